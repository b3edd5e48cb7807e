// An operator of the model as `workload.operator` would state it, for those who run it.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include "model/workload/operator.hpp"

namespace foretrain {

struct StatedOperator {
  std::string kind;
  std::map<std::string, std::string> fields;
};

/// Some operators have no kernels to run them: packed sequences, probes of memory.
class NotReplayable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A streaming operator, of which the model knows the bytes alone, becomes `traffic` { read, written, flops }; all
/// others read back as the same operator (model/scenario/operator_workload_reader.cpp), names apart. Throws
/// NotReplayable.
StatedOperator stated(const Operator& op);

}  // namespace foretrain
