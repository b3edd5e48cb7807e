// What an operator takes on a processor that trains (model/hardware/processor.hpp).
#pragma once

#include "model/cost/kernels.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

/// Prices an operator on a device that is a processor (`gpu.processor` is there).
KernelTime processor_time(const Operator& op, const Gpu& gpu);

}  // namespace foretrain
