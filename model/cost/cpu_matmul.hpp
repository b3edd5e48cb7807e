// GEMMs on processors, by a blocked algorithm that packs its operands.
#pragma once

#include <string>

#include "model/hardware/cpu.hpp"
#include "model/workload/host_operators.hpp"

namespace foretrain {

struct CpuMatmulCost {
  Seconds time;
  Flops flops;
  Bytes bytes;        ///< packed and streamed through memory or the last cache
  std::string bound;  ///< "compute", "memory" or "latency"
};

/// Prices a product. Throws ImpossiblePlan when the CPU has no described hierarchy, or fewer cores than threads.
CpuMatmulCost cpu_matmul_cost(const CpuMatmul& work, const Cpu& cpu);

}  // namespace foretrain
