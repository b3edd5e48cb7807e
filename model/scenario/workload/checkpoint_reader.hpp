// `workload.train.checkpoint:` of a scenario.
#pragma once

#include "model/scenario/yaml_reader.hpp"
#include "model/workload/training.hpp"

namespace foretrain {

/// { every: 100 | auto, mode: asynchronous (=) | synchronous | in_memory, storage: node | … (= object-store, which
/// outlives any machine) }; `of_node`: what `storage: node` is.
Checkpoint read_checkpoint(const Field& field, const Storage& of_node);

}  // namespace foretrain
