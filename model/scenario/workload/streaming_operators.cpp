// Norms, softmax, pooling, look-ups and losses: passes over tensors, counted once per tensor that a kernel reads or
// writes.
#include "model/scenario/workload/workload_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/words.hpp"
#include "model/workload/update_passes.hpp"

namespace foretrain {

namespace {

constexpr IntegerRange extent{1, 1'000'000'000};
constexpr double fp32_size = 4.0;
constexpr double index_size = 8.0;  // PyTorch's labels, token numbers and pooling indices

/// `pass: forward | backward` (= forward).
bool read_backward(const MappingReader& keys) { return keys.flag_or("pass", false, "forward", "backward"); }

double read_extent(const MappingReader& keys, std::string_view key) {
  return static_cast<double>(keys[key].integer(extent));
}

struct Passes {
  double read = 0.0, written = 0.0;  ///< bytes
  double flops = 0.0;
};

Operator streaming_operator(std::string name, StreamingKind kind, const Passes& passes, Precision precision,
                            int kernels, bool backward, OperatorRole role = OperatorRole::any) {
  Operator op{std::move(name), Streaming{kind, Bytes(passes.read), Bytes(passes.written), Flops(passes.flops), false},
              precision, kernels};
  op.role = role;
  op.backward = backward;
  return op;
}

std::string_view suffix(bool backward) { return backward ? " gradient" : ""; }

struct Rows {
  double rows = 0.0, columns = 0.0;
  Precision precision = Precision::fp32;
  bool backward = false;
  [[nodiscard]] double elements() const { return rows * columns; }
  [[nodiscard]] double bytes() const { return elements() * bytes_per_element(precision).value(); }
};

/// `op`, by a block of threads for each row, which moves `tensors` numbers of each column and reads `again` of them
/// anew.
Operator by_rows(Operator op, const Rows& shape, double threads, double tensors, double again) {
  std::get<Streaming>(op.work).rows = {shape.rows, threads, Bytes(tensors * shape.bytes() / shape.rows),
                                       Bytes(again * shape.bytes())};
  return op;
}

Rows read_rows(const Field& field) {
  const MappingReader keys = field.mapping(keys::rows);
  return {read_extent(keys, "rows"), read_extent(keys, "columns"), read_precision(keys), read_backward(keys)};
}

constexpr double master_size = 4.0;
constexpr IntegerRange parameter_counts{1, 1'000'000'000'000};

}  // namespace

/// { rows, columns, pass (= forward), precision (= fp32) }: over each row, by 128 threads (PyTorch,
/// ATen/native/cuda/layer_norm_kernel.cu, vectorized_layer_norm_kernel and layer_norm_grad_input_kernel). Forward reads
/// x for its statistics and again for y; backward reads x and dy for two sums and again for dx, then a second kernel
/// reads both for the gradients of scale and shift.
Operator read_layer_norm(const Field& field) {
  const Rows shape = read_rows(field);
  const double statistics = 2.0 * shape.rows * fp32_size, scale = 2.0 * shape.columns * fp32_size;
  const Passes forward{shape.bytes() + scale, shape.bytes() + statistics, 8.0 * shape.elements()};
  const Passes backward{4.0 * shape.bytes() + 2.0 * statistics + scale, shape.bytes() + scale, 14.0 * shape.elements()};
  const Operator norm = streaming_operator(
      fmt::format("layer norm{} {}x{}", suffix(shape.backward), shape.rows, shape.columns), StreamingKind::reduction,
      shape.backward ? backward : forward, shape.precision, shape.backward ? 2 : 1, shape.backward, OperatorRole::norm);
  return by_rows(norm, shape, 128.0, shape.backward ? 3.0 : 2.0, shape.backward ? 2.0 : 1.0);
}

/// { rows, columns, pass (= forward), precision (= fp32) }: over each row. Forward reads x and writes y; backward reads
/// y and dy and writes dx. PyTorch (ATen/native/cuda/SoftMax.cu, host_softmax) gives rows of at most 1,024 numbers to a
/// warp, which keeps them; longer ones to up to 1,024 threads, which read x for its maximum, its sum and y, or y and dy
/// for a sum and dx.
Operator read_softmax(const Field& field) {
  const Rows shape = read_rows(field);
  const Passes forward{shape.bytes(), shape.bytes(), 5.0 * shape.elements()};
  const Passes backward{2.0 * shape.bytes(), shape.bytes(), 4.0 * shape.elements()};
  const Operator softmax = streaming_operator(
      fmt::format("softmax{} {}x{}", suffix(shape.backward), shape.rows, shape.columns), StreamingKind::reduction,
      shape.backward ? backward : forward, shape.precision, 1, shape.backward, OperatorRole::softmax);
  constexpr double most_of_warp = 1024.0, most_threads = 1024.0;
  if (shape.columns <= most_of_warp) return softmax;
  return by_rows(softmax, shape, most_threads, shape.backward ? 3.0 : 2.0, 2.0);
}

/// { batch, channels, height, width, pass (= forward), precision (= fp32) }: in training. Forward reads x for mean and
/// variance and again to normalise it; backward reads x and dy for the sums over the batch and again for dx.
Operator read_batch_norm(const Field& field) {
  const MappingReader keys = field.mapping(keys::batch_norm);
  const double channels = read_extent(keys, "channels");
  const double elements =
      read_extent(keys, "batch") * channels * read_extent(keys, "height") * read_extent(keys, "width");
  const Precision precision = read_precision(keys);
  const double bytes = elements * bytes_per_element(precision).value(), per_channel = 2.0 * channels * fp32_size;
  const bool backward = read_backward(keys);
  const Passes passes = backward ? Passes{4.0 * bytes + 2.0 * per_channel, bytes + per_channel, 9.0 * elements}
                                 : Passes{2.0 * bytes + 2.0 * per_channel, bytes + 2.0 * per_channel, 5.0 * elements};
  return streaming_operator(fmt::format("batch norm{} of {:g} elements", suffix(backward), elements),
                            StreamingKind::reduction, passes, precision, 1, backward, OperatorRole::norm);
}

/// { batch, channels, height, width, kernel, stride (= kernel), pad (= 0), function (= max), pass (= forward),
/// precision
/// (= fp32) }: max | average. Max pooling writes where each maximum was, and its gradient reads that.
Operator read_pooling(const Field& field) {
  const MappingReader keys = field.mapping(keys::pooling);
  const std::int64_t kernel = keys["kernel"].integer({1, 10'000});
  const std::int64_t stride = keys.integer_or("stride", kernel, {1, 10'000});
  const std::int64_t pad = keys.integer_or("pad", 0, {0, 10'000});
  const std::int64_t height = keys["height"].integer(extent), width = keys["width"].integer(extent);
  keys.fail_if(kernel > height + 2 * pad || kernel > width + 2 * pad, "kernel", "larger than the padded input",
               "a kernel that fits");
  const double maps = read_extent(keys, "batch") * read_extent(keys, "channels");
  const double in = maps * static_cast<double>(height * width);
  const std::int64_t rows = (height + 2 * pad - kernel) / stride + 1;
  const std::int64_t columns = (width + 2 * pad - kernel) / stride + 1;
  const double out = maps * static_cast<double>(rows * columns);
  const bool maximum = keys.flag_or("function", true, "average", "max");
  const bool backward = read_backward(keys);
  const Precision precision = read_precision(keys);
  const double element = bytes_per_element(precision).value(), indices = maximum ? out * index_size : 0.0;
  const double flops = out * static_cast<double>(kernel * kernel);
  const Passes passes = backward ? Passes{out * element + indices, in * element, flops}
                                 : Passes{in * element, out * element + indices, flops};
  return streaming_operator(
      fmt::format("{} pooling{} of {:g} elements", maximum ? "max" : "average", suffix(backward), in),
      StreamingKind::reduction, passes, precision, 1, backward,
      maximum ? OperatorRole::max_pooling : OperatorRole::average_pooling);
}

/// { tokens, width, vocabulary, pass (= forward), precision (= fp32) }: forward gathers a row of the table for each
/// token. Backward fills a gradient as large as the table with zeros and adds each token's row to it.
Operator read_embedding(const Field& field) {
  const MappingReader keys = field.mapping(keys::embedding);
  const double tokens = read_extent(keys, "tokens"), width = read_extent(keys, "width");
  const double vocabulary = read_extent(keys, "vocabulary");
  const Precision precision = read_precision(keys);
  const double element = bytes_per_element(precision).value();
  const double rows = tokens * width * element, numbers = tokens * index_size;
  const bool backward = read_backward(keys);
  const Passes passes = backward ? Passes{2.0 * rows + numbers, rows + vocabulary * width * element, tokens * width}
                                 : Passes{rows + numbers, rows, 0.0};
  return streaming_operator(fmt::format("embedding{} of {:g} tokens", suffix(backward), tokens), StreamingKind::gather,
                            passes, precision, backward ? 2 : 1, backward);
}

/// { rows, columns, pass (= forward), precision (= fp32) }: softmax over each row's logits and the loss of its label.
/// Forward reads the logits and writes fp32 log-probabilities; backward reads these twice and writes the gradient in
/// fp32 and, where logits are shorter, in their own format.
Operator read_cross_entropy(const Field& field) {
  const Rows shape = read_rows(field);
  const double probabilities = shape.elements() * fp32_size, labels = shape.rows * index_size;
  const int casts = shape.precision == Precision::fp32 ? 0 : 1;
  const Passes forward{shape.bytes() + labels, probabilities, 5.0 * shape.elements()};
  const Passes backward{2.0 * probabilities + labels, probabilities + casts * shape.bytes(), 4.0 * shape.elements()};
  return streaming_operator(fmt::format("cross-entropy{} {}x{}", suffix(shape.backward), shape.rows, shape.columns),
                            StreamingKind::reduction, shape.backward ? backward : forward, shape.precision,
                            (shape.backward ? 3 : 2) + casts, shape.backward, OperatorRole::loss);
}

/// { parameters, algorithm (= adamw), tensors (= 1), fused (= true), precision (= fp32) }: one update. Weights, states
/// and gradients are fp32; a copy of the weights in a shorter precision is written too. Fused is one kernel over all
/// tensors, otherwise each tensor has kernels of its own.
Operator read_optimizer(const Field& field) {
  const MappingReader keys = field.mapping(keys::optimizer);
  const auto parameters = static_cast<double>(keys["parameters"].integer(parameter_counts));
  const UpdatePasses passes = update_passes(keys.choice_or("algorithm", Optimizer::adamw));
  const int tensors = keys.int_or("tensors", 1, {1, 10'000'000});
  const bool fused = keys.flag_or("fused", true);
  const Precision precision = read_precision(keys);
  const double copy = precision == Precision::fp32 ? 0.0 : bytes_per_element(storage_precision(precision)).value();
  const double cast = copy > 0.0 && !fused ? master_size : 0.0;  // the copy reads the weights again
  const double read = master_size * (fused ? passes.fused_read : passes.separate_read) + cast;
  const double written = master_size * (fused ? passes.fused_written : passes.separate_written) + copy;
  const int kernels = fused ? 1 : tensors * (passes.separate_kernels + (copy > 0.0 ? 1 : 0));
  return {fmt::format("optimizer of {:g} parameters", parameters),
          Streaming{StreamingKind::optimizer, Bytes(read * parameters), Bytes(written * parameters),
                    Flops(passes.flops * parameters), false},
          precision, kernels};
}

/// { parameters, tensors (= 1), fused (= true), precision (= fp32) }: the norm of all gradients, then their scaling.
/// Fused takes four kernels: norms of chunks, their sum, the factor, the scaling; otherwise two per tensor and two for
/// the sum.
Operator read_gradient_clipping(const Field& field) {
  const MappingReader keys = field.mapping(keys::gradient_clipping);
  const auto parameters = static_cast<double>(keys["parameters"].integer(parameter_counts));
  const int tensors = keys.int_or("tensors", 1, {1, 10'000'000});
  const Precision precision = read_precision(keys);
  const double gradients = parameters * bytes_per_element(storage_precision(precision)).value();
  return {fmt::format("gradient clipping of {:g} parameters", parameters),
          Streaming{StreamingKind::optimizer, Bytes(2.0 * gradients), Bytes(gradients), Flops(3.0 * parameters), false},
          precision, keys.flag_or("fused", true) ? 4 : 2 * tensors + 2};
}

/// { pattern (= sequential), working_set, element (= 4 B), stride (strided only), reads }: sequential | strided |
/// random | dependent reads on the GPU; `reads` is once through the working set where it is not stated.
Operator read_memory_access(const Field& field) {
  const MappingReader keys = field.mapping(keys::memory_access);
  MemoryAccess work;
  keys.fill(work);
  keys.fail_if(work.element > work.working_set, "working_set", "smaller than one element",
               "at least the element's size");
  const bool strided = work.pattern == AccessPattern::strided;
  if (strided) {
    work.stride = keys["stride"].quantity<Bytes>();
    if (work.stride < work.element) keys.fail("stride", "shorter than one element", "at least the element's size");
  } else if (keys.has("stride")) {
    keys.fail("stride", "this pattern has no stride", "pattern: strided");
  }
  const double once = std::max(1.0, std::floor(work.working_set / (strided ? work.stride : work.element)));
  work.reads = once;
  if (const auto reads = keys.find("reads"))
    work.reads = static_cast<double>(reads->integer({1, 1'000'000'000'000'000}));
  return {fmt::format("{:g} reads", work.reads), work, Precision::fp32, 1};
}

}  // namespace foretrain
