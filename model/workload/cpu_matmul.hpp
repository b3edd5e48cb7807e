// A matrix product on a processor's cores.
#pragma once

#include <cstdint>

#include "model/hardware/precision.hpp"

namespace foretrain {

/// C[m,n] = A[m,k] · B[k,n], in fp32 or fp64, shared out among `threads` cores.
struct CpuMatmul {
  std::int64_t m = 1, n = 1, k = 1;
  Precision precision = Precision::fp32;
  int threads = 1;
  bool operator==(const CpuMatmul&) const = default;
};

}  // namespace foretrain
