// Operators of processors, and walks over memories. No machine, no time.
#pragma once

#include <cstdint>

#include "model/base/quantity.hpp"
#include "model/hardware/precision.hpp"

namespace foretrain {

/// pointer_chase: each address is the value of the load before it, in random order; random: addresses are known.
enum class WalkPattern { sequential, strided, random, pointer_chase };
/// copy: the first half of the working set into the second.
enum class WalkAccess { read, write, copy };
/// alternating: there and back, so that each pass begins with what the last one left in the caches.
enum class WalkDirection { forward, backward, alternating };

/// A walk over a working set in a processor's memory: what is touched, in which order and how.
struct MemoryWalk {
  Bytes working_set;  ///< of all threads together, each its part
  WalkPattern pattern = WalkPattern::sequential;
  WalkAccess access = WalkAccess::read;
  WalkDirection direction = WalkDirection::forward;
  Bytes element{0.0};  ///< size of an access; zero: the widest vector (sequential), 8 bytes (otherwise)
  Bytes stride{64.0};  ///< strided: from one access to the next
  Bytes offset{0.0};   ///< of the first access, from the beginning of a line
  Bytes burst{64.0};   ///< random: this much in a row at each place
  int threads = 1;
  double passes = 1.0;  ///< over the working set, which the caches have seen before
  Seconds between{};    ///< that go by between two passes, in which the walk touches no memory
  bool huge_pages = false;
  bool remote = false;  ///< memory of another socket
  bool operator==(const MemoryWalk&) const = default;
};

/// Pointers followed one after the other in a GPU's memory, by one thread, over a working set that its L2 cannot hold.
struct GpuChase {
  Bytes working_set;
  bool operator==(const GpuChase&) const = default;
};

/// A GEMM on a processor's cores: C[m,n] = A[m,k] · B[k,n], in fp32 or fp64, shared out among `threads`
/// cores.
struct CpuMatmul {
  std::int64_t m = 1, n = 1, k = 1;
  Precision precision = Precision::fp32;
  int threads = 1;
  bool operator==(const CpuMatmul&) const = default;
};

}  // namespace foretrain
