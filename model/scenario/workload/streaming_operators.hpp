// Operators bound by memory that scenarios state by their shape: workload.operator and workload.tasks.
#pragma once

#include "model/scenario/yaml_reader.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

/// `precision`, fp32 where it is not stated.
Precision read_precision(const MappingReader& keys);

Operator read_layer_norm(const Field& field);
Operator read_softmax(const Field& field);
Operator read_batch_norm(const Field& field);
Operator read_pooling(const Field& field);
Operator read_embedding(const Field& field);
Operator read_cross_entropy(const Field& field);
Operator read_optimizer(const Field& field);
Operator read_gradient_clipping(const Field& field);
Operator read_memory_access(const Field& field);

}  // namespace foretrain
