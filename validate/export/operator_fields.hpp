// An operator of the model as `workload.operator` would state it, for executors that run it.
#pragma once

#include <stdexcept>

#include "model/base/work.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

/// Some operators have no kernels to run them, or no keys that say enough: packed sequences, probes of memory.
class NotReplayable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Launched once, without its prediction. A streaming operator, of which the model knows the bytes alone, becomes
/// `traffic` { read, written, flops }; all others read back as the same operator
/// (model/scenario/workload/operator_workload_reader.cpp), names apart. Throws NotReplayable.
KernelWork stated(const Operator& op);

}  // namespace foretrain
