#include "model/workload/stated_operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "model/base/words.hpp"
#include "model/workload/update_passes.hpp"

namespace foretrain {

namespace {

constexpr double fp32_width = 4.0, master_width = 4.0;
constexpr double index_width = 8.0;  // PyTorch's labels, token numbers and pooling indices

struct Passes {
  double read = 0.0, written = 0.0;  ///< bytes
  double flops = 0.0;
};

/// `what` of so much, or its gradient: "softmax" of "8x8".
template <typename Shape>
Operator streamed(const Shape& shape, std::string_view what, std::string_view much, StreamingKind kind,
                  const Passes& forward, const Passes& gradient, int kernels, OperatorRole role = OperatorRole::any) {
  const Passes& passes = shape.backward ? gradient : forward;
  Operator op{fmt::format("{}{} {}", what, shape.backward ? " gradient" : "", much),
              Streaming{kind, Bytes(passes.read), Bytes(passes.written), Flops(passes.flops), false}, shape.precision,
              kernels};
  op.role = role;
  op.backward = shape.backward;
  return op;
}

struct Rows {
  explicit Rows(const RowsShape& shape)
      : rows(static_cast<double>(shape.rows)),
        columns(static_cast<double>(shape.columns)),
        element(bytes_per_element(shape.precision).value()) {}

  double rows, columns, element;
  double elements = rows * columns, bytes = elements * element;
  std::string much = fmt::format("{}x{}", rows, columns);
};

/// `op`, by a block of threads for each row, which moves `tensors` numbers of each column and reads `again` of them
/// anew.
Operator by_rows(Operator op, const Rows& of, double threads, double tensors, double again, double instructions) {
  std::get<Streaming>(op.work).rows = {of.rows, threads, Bytes(tensors * of.bytes / of.rows), Bytes(again * of.bytes),
                                       instructions};
  return op;
}

}  // namespace

Operator ElementwiseShape::made(StreamingKind kind) const {
  const auto count = static_cast<double>(elements);
  const Bytes operand = bytes_per_element(precision) * count;
  Streaming work;
  work.kind = kind;
  work.read = operand * static_cast<double>(inputs);
  work.written = operand * static_cast<double>(outputs);
  work.flops = Flops(count * flops_per_element);
  return {fmt::format("{} of {:g} elements", name(kind), count), work, precision, 1};
}

/// Over each row, by 128 threads (PyTorch, ATen/native/cuda/layer_norm_kernel.cu, vectorized_layer_norm_kernel and
/// layer_norm_grad_input_kernel). Forward reads x for its statistics and again for y. Backward reads x and dy for two
/// sums and again for dx, then a second kernel reads both for the gradients of scale and shift. Forward, some 30
/// instructions (cuWelfordOnlineSum divides) for each of four numbers that a thread takes at a time, and 1,000 for the
/// reductions of four warps (cuWelfordCombine): kernels of steps on H100 and H200 with rows of 768 to 2,048 (24
/// shapes).
Operator layer_norm(const RowsShape& shape) {
  const Rows of(shape);
  const double statistics = 2.0 * of.rows * fp32_width, scale = 2.0 * of.columns * fp32_width;
  const Operator norm = streamed(shape, "layer norm", of.much, StreamingKind::reduction,
                                 {of.bytes + scale, of.bytes + statistics, 8.0 * of.elements},
                                 {4.0 * of.bytes + 2.0 * statistics + scale, of.bytes + scale, 14.0 * of.elements},
                                 shape.backward ? 2 : 1, OperatorRole::norm);
  if (shape.backward) return by_rows(norm, of, 128.0, 3.0, 2.0, 0.0);
  const double warps = 4.0, turns = std::ceil(of.columns / (4.0 * 32.0 * warps));
  return by_rows(norm, of, 128.0, 2.0, 1.0, 1000.0 + 30.0 * 4.0 * warps * turns);
}

/// Over each row. Forward reads x and writes y; backward reads y and dy and writes dx. PyTorch
/// (ATen/native/cuda/SoftMax.cu, host_softmax) gives rows of at most 1,024 numbers to a warp, which keeps them. Longer
/// ones to up to 512 threads (SoftMax_getBlockSize; half as many as read 16 bytes each), which read x for its maximum,
/// its sum and y, or y and dy for a sum and dx. Two reductions over a block take some 400 instructions of each warp,
/// exponentials 15 a number.
Operator softmax(const RowsShape& shape) {
  const Rows of(shape);
  const Operator op =
      streamed(shape, "softmax", of.much, StreamingKind::reduction, {of.bytes, of.bytes, 5.0 * of.elements},
               {2.0 * of.bytes, of.bytes, 4.0 * of.elements}, 1, OperatorRole::softmax);
  constexpr double most_of_warp = 1024.0, most_readers = 1024.0, warp = 32.0;
  if (of.columns <= most_of_warp) return op;
  const double readers = std::min(of.columns * of.element / 16.0, most_readers);
  const double threads = std::max(std::exp2(std::ceil(std::log2(readers / 2.0))), warp);
  const double instructions = 400.0 * threads / warp + 15.0 * of.columns / warp;
  return by_rows(op, of, threads, shape.backward ? 3.0 : 2.0, 2.0, shape.backward ? 0.0 : instructions);
}

/// In training. Forward reads x for mean and variance and again to normalise it; backward reads x and dy for the sums
/// over the batch and again for dx.
Operator batch_norm(const BatchNormShape& shape) {
  const auto channels = static_cast<double>(shape.channels);
  const double elements = static_cast<double>(shape.batch) * channels * static_cast<double>(shape.height) *
                          static_cast<double>(shape.width);
  const double bytes = elements * bytes_per_element(shape.precision).value(), per_channel = 2.0 * channels * fp32_width;
  return streamed(shape, "batch norm", fmt::format("of {:g} elements", elements), StreamingKind::reduction,
                  {2.0 * bytes + 2.0 * per_channel, bytes + 2.0 * per_channel, 5.0 * elements},
                  {4.0 * bytes + 2.0 * per_channel, bytes + per_channel, 9.0 * elements}, 1, OperatorRole::norm);
}

/// Max pooling writes where each maximum was, and its gradient reads that.
Operator pooling(const PoolingShape& shape) {
  const auto& [batch, channels, height, width, kernel, pad, stated, maximum, backward, precision] = shape;
  const std::int64_t stride = stated > 0 ? stated : kernel;
  const double element = bytes_per_element(precision).value();
  const double maps = static_cast<double>(batch) * static_cast<double>(channels);
  const double in = maps * static_cast<double>(height * width);
  const std::int64_t rows = (height + 2 * pad - kernel) / stride + 1, columns = (width + 2 * pad - kernel) / stride + 1;
  const double out = maps * static_cast<double>(rows * columns);
  const double indices = maximum ? out * index_width : 0.0;
  const double flops = out * static_cast<double>(kernel * kernel);
  return streamed(shape, maximum ? "max pooling" : "average pooling", fmt::format("of {:g} elements", in),
                  StreamingKind::reduction, {in * element, out * element + indices, flops},
                  {out * element + indices, in * element, flops}, 1,
                  maximum ? OperatorRole::max_pooling : OperatorRole::average_pooling);
}

/// Forward gathers a row of the table for each token. Backward fills a gradient as large as the table with zeros and
/// adds each token's row to it.
Operator embedding(const EmbeddingShape& shape) {
  const auto tokens = static_cast<double>(shape.tokens), width = static_cast<double>(shape.width);
  const double element = bytes_per_element(shape.precision).value();
  const double rows = tokens * width * element, numbers = tokens * index_width;
  const double table = static_cast<double>(shape.vocabulary) * width * element;
  return streamed(shape, "embedding", fmt::format("of {:g} tokens", tokens), StreamingKind::gather,
                  {rows + numbers, rows, 0.0}, {2.0 * rows + numbers, rows + table, tokens * width},
                  shape.backward ? 2 : 1);
}

/// Softmax over each row's logits and the loss of its label. Forward reads the logits and writes fp32
/// log-probabilities; backward reads these twice and writes the gradient in fp32 and, where logits are shorter, in
/// their own format.
Operator cross_entropy(const RowsShape& shape) {
  const Rows of(shape);
  const double probabilities = of.elements * fp32_width, labels = of.rows * index_width;
  const int casts = shape.precision == Precision::fp32 ? 0 : 1;
  return streamed(shape, "cross-entropy", of.much, StreamingKind::reduction,
                  {of.bytes + labels, probabilities, 5.0 * of.elements},
                  {2.0 * probabilities + labels, probabilities + casts * of.bytes, 4.0 * of.elements},
                  (shape.backward ? 3 : 2) + casts, OperatorRole::loss);
}

/// One update. Weights, states and gradients are fp32; a copy of the weights in a shorter precision is written too.
/// Fused is one kernel over all tensors, otherwise each tensor has kernels of its own.
Operator optimizer_update(const UpdateShape& shape) {
  const auto parameters = static_cast<double>(shape.parameters);
  const UpdatePasses passes = update_passes(shape.algorithm);
  const bool fused = shape.fused;
  const Precision precision = shape.precision;
  const double copy = precision == Precision::fp32 ? 0.0 : bytes_per_element(storage_precision(precision)).value();
  const double cast = copy > 0.0 && !fused ? master_width : 0.0;  // the copy reads the weights again
  const double read = master_width * (fused ? passes.fused_read : passes.separate_read) + cast;
  const double written = master_width * (fused ? passes.fused_written : passes.separate_written) + copy;
  const int kernels = fused ? 1 : shape.tensors * (passes.separate_kernels + (copy > 0.0 ? 1 : 0));
  return {fmt::format("optimizer of {:g} parameters", parameters),
          Streaming{StreamingKind::optimizer, Bytes(read * parameters), Bytes(written * parameters),
                    Flops(passes.flops * parameters), false},
          precision, kernels};
}

/// The norm of all gradients, then their scaling. Fused takes four kernels: norms of chunks, their sum, the factor, the
/// scaling; otherwise two per tensor and two for the sum.
Operator gradient_clipping(const UpdateShape& shape) {
  const auto parameters = static_cast<double>(shape.parameters);
  const double gradients = parameters * bytes_per_element(storage_precision(shape.precision)).value();
  return {fmt::format("gradient clipping of {:g} parameters", parameters),
          Streaming{StreamingKind::optimizer, Bytes(2.0 * gradients), Bytes(gradients), Flops(3.0 * parameters), false},
          shape.precision, shape.fused ? 4 : 2 * shape.tensors + 2};
}

}  // namespace foretrain
