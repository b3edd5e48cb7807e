// Operators of one or a few kernels by their shapes: passes over tensors, counted once per tensor that a kernel reads
// or writes.
#pragma once

#include <cstdint>

#include "model/workload/operator.hpp"
#include "model/workload/training.hpp"

namespace foretrain {

/// An elementwise operator or a reduction.
struct ElementwiseShape {
  std::int64_t elements = 1, inputs = 1, outputs = 1;
  double flops_per_element = 1.0;
  Precision precision = Precision::fp32;

  [[nodiscard]] Operator made(StreamingKind kind) const;
};

/// Over each row: softmax, layer norm, cross-entropy.
struct RowsShape {
  std::int64_t rows = 1, columns = 1;
  bool backward = false;
  Precision precision = Precision::fp32;
};
Operator layer_norm(const RowsShape& shape);
Operator softmax(const RowsShape& shape);
Operator cross_entropy(const RowsShape& shape);

struct BatchNormShape {
  std::int64_t batch = 1, channels = 1, height = 1, width = 1;
  bool backward = false;
  Precision precision = Precision::fp32;
};
Operator batch_norm(const BatchNormShape& shape);

struct PoolingShape {
  std::int64_t batch = 1, channels = 1, height = 1, width = 1, kernel = 1, pad = 0;
  std::int64_t stride = 0;  ///< 0: the kernel's
  bool maximum = true;
  bool backward = false;
  Precision precision = Precision::fp32;
};
Operator pooling(const PoolingShape& shape);

struct EmbeddingShape {
  std::int64_t tokens = 1, width = 1, vocabulary = 1;
  bool backward = false;
  Precision precision = Precision::fp32;
};
Operator embedding(const EmbeddingShape& shape);

/// Of an optimizer's update, or of clipping gradients by their norm.
struct UpdateShape {
  std::int64_t parameters = 1;
  Optimizer algorithm = Optimizer::adamw;
  int tensors = 1;  ///< that the parameters are in
  bool fused = true;
  Precision precision = Precision::fp32;  ///< of gradients that are clipped; of an update's second copy, fp32: none
};
Operator optimizer_update(const UpdateShape& shape);
Operator gradient_clipping(const UpdateShape& shape);

}  // namespace foretrain
