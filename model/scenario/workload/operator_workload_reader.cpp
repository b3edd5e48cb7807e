#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/scenario/workload/workload_reader.hpp"
#include "model/workload/update_passes.hpp"

namespace foretrain {

namespace {

/// fp32 where it is not stated.
Precision read_precision(const MappingReader& keys) { return keys.choice_or("precision", Precision::fp32); }

/// C[m,n] = A[m,k] · B[k,n], row by row; see Matmul.
Operator read_matmul(const Field& field) {
  const MappingReader keys = field.mapping(keys::matmul);
  Matmul work;
  keys.fill(work);
  return {fmt::format("matmul {}x{}x{}", work.m, work.n, work.k), work, read_precision(keys), 1};
}

Operator read_convolution(const Field& field) {
  const MappingReader keys = field.mapping(keys::convolution);
  Convolution work;
  keys.fill(work);
  std::tie(work.r, work.s) = read_pair(keys["kernel"], {1, 10'000});
  std::pair<std::int64_t, std::int64_t> pad{0, 0};
  if (const auto value = keys.find("pad")) pad = read_pair(*value, {0, 10'000});
  work.p = (work.h + 2 * pad.first - work.r) / work.stride + 1;
  work.q = (work.w + 2 * pad.second - work.s) / work.stride + 1;
  keys.fail_if(work.h + 2 * pad.first < work.r || work.w + 2 * pad.second < work.s, "kernel",
               "larger than the padded input", "a kernel that fits");
  keys.fail_if(work.c % work.groups != 0 || work.k % work.groups != 0, "groups",
               "{} does not divide {} channels and {} filters", "a common divisor of both", work.groups, work.c,
               work.k);
  return {
      fmt::format("convolution {}x{}x{}x{}, {} filters {}x{}", work.n, work.c, work.h, work.w, work.k, work.r, work.s),
      work, read_precision(keys), 1};
}

Operator read_streaming(const Field& field, StreamingKind kind, std::string_view word) {
  const MappingReader keys = field.mapping(keys::elementwise);
  const auto elements = static_cast<double>(keys["elements"].integer({1, 1'000'000'000'000}));
  const Precision precision = read_precision(keys);
  const Bytes operand = bytes_per_element(precision) * elements;
  Streaming work;
  work.kind = kind;
  work.read = operand * static_cast<double>(keys.integer_or("inputs", 1, {0, 1000}));
  work.written = operand * static_cast<double>(keys.integer_or("outputs", 1, {0, 1000}));
  work.flops = Flops(elements * keys.number_or("flops_per_element", 1.0));
  return {fmt::format("{} of {:g} elements", word, elements), work, precision, 1};
}
Operator read_elementwise(const Field& field) {
  return read_streaming(field, StreamingKind::elementwise, "elementwise");
}
Operator read_reduction(const Field& field) { return read_streaming(field, StreamingKind::reduction, "reduction"); }

/// Within device memory, every byte read once and written once.
Operator read_copy(const Field& field) {
  const MappingReader keys = field.mapping(keys::copy);
  const Bytes size = keys["size"].quantity<Bytes>();
  Streaming work;
  work.read = size;
  work.written = size;
  return {"copy", work, Precision::fp32, 1};
}

// Norms, softmax, pooling, look-ups, losses and updates: passes over tensors, counted once per tensor that a kernel
// reads or writes.

constexpr double fp32_size = 4.0;
constexpr double index_size = 8.0;  // PyTorch's labels, token numbers and pooling indices

struct Passes {
  double read = 0.0, written = 0.0;  ///< bytes
  double flops = 0.0;
};

/// An operator stated by its shape, or its gradient.
struct Streamed {
  explicit Streamed(const MappingReader& shape) : keys(shape) {}

  [[nodiscard]] double extent(std::string_view key) const {
    return static_cast<double>(keys[key].integer({1, 1'000'000'000}));
  }
  /// `what` of so much: "softmax" of "8x8".
  [[nodiscard]] Operator made(std::string_view what, std::string_view much, StreamingKind kind, const Passes& forward,
                              const Passes& gradient, int kernels, OperatorRole role = OperatorRole::any) const {
    const Passes& passes = backward ? gradient : forward;
    Operator op{fmt::format("{}{} {}", what, backward ? " gradient" : "", much),
                Streaming{kind, Bytes(passes.read), Bytes(passes.written), Flops(passes.flops), false}, precision,
                kernels};
    op.role = role;
    op.backward = backward;
    return op;
  }

  MappingReader keys;
  Precision precision = read_precision(keys);
  double element = bytes_per_element(precision).value();
  bool backward = keys.flag_or("pass", false, "forward", "backward");
};

struct Rows : Streamed {
  explicit Rows(const Field& field) : Streamed(field.mapping(keys::rows)) {}
  double rows = extent("rows"), columns = extent("columns");
  double elements = rows * columns, bytes = elements * element;
  std::string much = fmt::format("{}x{}", rows, columns);
};

/// `op`, by a block of threads for each row, which moves `tensors` numbers of each column and reads `again` of them
/// anew.
Operator by_rows(Operator op, const Rows& shape, double threads, double tensors, double again, double instructions) {
  std::get<Streaming>(op.work).rows = {shape.rows, threads, Bytes(tensors * shape.bytes / shape.rows),
                                       Bytes(again * shape.bytes), instructions};
  return op;
}

constexpr double master_size = 4.0;
constexpr IntegerRange parameter_counts{1, 1'000'000'000'000};

/// Over each row, by 128 threads (PyTorch, ATen/native/cuda/layer_norm_kernel.cu, vectorized_layer_norm_kernel and
/// layer_norm_grad_input_kernel). Forward reads x for its statistics and again for y. Backward reads x and dy for two
/// sums and again for dx, then a second kernel reads both for the gradients of scale and shift. Forward, some 30
/// instructions (cuWelfordOnlineSum divides) for each of four numbers that a thread takes at a time, and 1,000 for the
/// reductions of four warps (cuWelfordCombine): kernels of steps on H100 and H200 with rows of 768 to 2,048 (24
/// shapes).
Operator read_layer_norm(const Field& field) {
  const Rows shape(field);
  const double statistics = 2.0 * shape.rows * fp32_size, scale = 2.0 * shape.columns * fp32_size;
  const Operator norm =
      shape.made("layer norm", shape.much, StreamingKind::reduction,
                 {shape.bytes + scale, shape.bytes + statistics, 8.0 * shape.elements},
                 {4.0 * shape.bytes + 2.0 * statistics + scale, shape.bytes + scale, 14.0 * shape.elements},
                 shape.backward ? 2 : 1, OperatorRole::norm);
  if (shape.backward) return by_rows(norm, shape, 128.0, 3.0, 2.0, 0.0);
  const double warps = 4.0, turns = std::ceil(shape.columns / (4.0 * 32.0 * warps));
  return by_rows(norm, shape, 128.0, 2.0, 1.0, 1000.0 + 30.0 * 4.0 * warps * turns);
}

/// Over each row. Forward reads x and writes y; backward reads y and dy and writes dx. PyTorch
/// (ATen/native/cuda/SoftMax.cu, host_softmax) gives rows of at most 1,024 numbers to a warp, which keeps them. Longer
/// ones to up to 512 threads (SoftMax_getBlockSize; half as many as read 16 bytes each), which read x for its maximum,
/// its sum and y, or y and dy for a sum and dx. Two reductions over a block take some 400 instructions of each warp,
/// exponentials 15 a number.
Operator read_softmax(const Field& field) {
  const Rows shape(field);
  const Operator softmax =
      shape.made("softmax", shape.much, StreamingKind::reduction, {shape.bytes, shape.bytes, 5.0 * shape.elements},
                 {2.0 * shape.bytes, shape.bytes, 4.0 * shape.elements}, 1, OperatorRole::softmax);
  constexpr double most_of_warp = 1024.0, most_readers = 1024.0, warp = 32.0;
  if (shape.columns <= most_of_warp) return softmax;
  const double readers = std::min(shape.columns * shape.element / 16.0, most_readers);
  const double threads = std::max(std::exp2(std::ceil(std::log2(readers / 2.0))), warp);
  const double instructions = 400.0 * threads / warp + 15.0 * shape.columns / warp;
  return by_rows(softmax, shape, threads, shape.backward ? 3.0 : 2.0, 2.0, shape.backward ? 0.0 : instructions);
}

/// In training. Forward reads x for mean and variance and again to normalise it; backward reads x and dy for the sums
/// over the batch and again for dx.
Operator read_batch_norm(const Field& field) {
  const Streamed shape(field.mapping(keys::batch_norm));
  const double channels = shape.extent("channels");
  const double elements = shape.extent("batch") * channels * shape.extent("height") * shape.extent("width");
  const double bytes = elements * shape.element, per_channel = 2.0 * channels * fp32_size;
  return shape.made("batch norm", fmt::format("of {:g} elements", elements), StreamingKind::reduction,
                    {2.0 * bytes + 2.0 * per_channel, bytes + 2.0 * per_channel, 5.0 * elements},
                    {4.0 * bytes + 2.0 * per_channel, bytes + per_channel, 9.0 * elements}, 1, OperatorRole::norm);
}

/// Max pooling writes where each maximum was, and its gradient reads that.
Operator read_pooling(const Field& field) {
  const Streamed shape(field.mapping(keys::pooling));
  const MappingReader& keys = shape.keys;
  const std::int64_t kernel = keys["kernel"].integer({1, 10'000});
  const std::int64_t stride = keys.integer_or("stride", kernel, {1, 10'000});
  const std::int64_t pad = keys.integer_or("pad", 0, {0, 10'000});
  const auto height = static_cast<std::int64_t>(shape.extent("height"));
  const auto width = static_cast<std::int64_t>(shape.extent("width"));
  keys.fail_if(kernel > height + 2 * pad || kernel > width + 2 * pad, "kernel", "larger than the padded input",
               "a kernel that fits");
  const double maps = shape.extent("batch") * shape.extent("channels");
  const double in = maps * static_cast<double>(height * width);
  const std::int64_t rows = (height + 2 * pad - kernel) / stride + 1;
  const std::int64_t columns = (width + 2 * pad - kernel) / stride + 1;
  const double out = maps * static_cast<double>(rows * columns);
  const bool maximum = keys.flag_or("function", true, "average", "max");
  const double indices = maximum ? out * index_size : 0.0;
  const double flops = out * static_cast<double>(kernel * kernel);
  return shape.made(maximum ? "max pooling" : "average pooling", fmt::format("of {:g} elements", in),
                    StreamingKind::reduction, {in * shape.element, out * shape.element + indices, flops},
                    {out * shape.element + indices, in * shape.element, flops}, 1,
                    maximum ? OperatorRole::max_pooling : OperatorRole::average_pooling);
}

/// Forward gathers a row of the table for each token. Backward fills a gradient as large as the table with zeros and
/// adds each token's row to it.
Operator read_embedding(const Field& field) {
  const Streamed shape(field.mapping(keys::embedding));
  const double tokens = shape.extent("tokens"), width = shape.extent("width");
  const double rows = tokens * width * shape.element, numbers = tokens * index_size;
  const double table = shape.extent("vocabulary") * width * shape.element;
  return shape.made("embedding", fmt::format("of {:g} tokens", tokens), StreamingKind::gather,
                    {rows + numbers, rows, 0.0}, {2.0 * rows + numbers, rows + table, tokens * width},
                    shape.backward ? 2 : 1);
}

/// Softmax over each row's logits and the loss of its label. Forward reads the logits and writes fp32
/// log-probabilities; backward reads these twice and writes the gradient in fp32 and, where logits are shorter, in
/// their own format.
Operator read_cross_entropy(const Field& field) {
  const Rows shape(field);
  const double probabilities = shape.elements * fp32_size, labels = shape.rows * index_size;
  const int casts = shape.precision == Precision::fp32 ? 0 : 1;
  return shape.made("cross-entropy", shape.much, StreamingKind::reduction,
                    {shape.bytes + labels, probabilities, 5.0 * shape.elements},
                    {2.0 * probabilities + labels, probabilities + casts * shape.bytes, 4.0 * shape.elements},
                    (shape.backward ? 3 : 2) + casts, OperatorRole::loss);
}

/// One update. Weights, states and gradients are fp32; a copy of the weights in a shorter precision is written too.
/// Fused is one kernel over all tensors, otherwise each tensor has kernels of its own.
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

/// The norm of all gradients, then their scaling. Fused takes four kernels: norms of chunks, their sum, the factor, the
/// scaling; otherwise two per tensor and two for the sum.
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

/// Reads on the GPU, once through the working set where their number is not stated.
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
  }
  const double once = std::max(1.0, std::floor(work.working_set / (strided ? work.stride : work.element)));
  work.reads = once;
  if (const auto reads = keys.find("reads"))
    work.reads = static_cast<double>(reads->integer({1, 1'000'000'000'000'000}));
  return {fmt::format("{:g} reads", work.reads), work, Precision::fp32, 1};
}

struct OperatorRow {
  std::string_view kind;
  Operator (*read)(const Field&);
};
constexpr OperatorRow operator_rows[] = {{"matmul", read_matmul},
                                         {"convolution", read_convolution},
                                         {"attention", read_attention},
                                         {"elementwise", read_elementwise},
                                         {"reduction", read_reduction},
                                         {"copy", read_copy},
                                         {"batch_norm", read_batch_norm},
                                         {"layer_norm", read_layer_norm},
                                         {"softmax", read_softmax},
                                         {"pooling", read_pooling},
                                         {"embedding", read_embedding},
                                         {"cross_entropy", read_cross_entropy},
                                         {"optimizer", read_optimizer},
                                         {"gradient_clipping", read_gradient_clipping},
                                         {"memory_access", read_memory_access}};

}  // namespace

const std::vector<std::string>& operator_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> words;
    for (const OperatorRow& row : operator_rows) words.emplace_back(row.kind);
    return words;
  }();
  return kinds;
}

StatedWork read_stated_work(const Field& field) {
  constexpr const char* example = "one, such as { kind: matmul, m: 4096, n: 4096, k: 4096, precision: bf16 }";
  if (!field.is_mapping()) field.fail("no mapping", example);
  StatedWork work{{}, field.node(), field.path()};
  std::vector<YamlEntry>& entries = work.keys.entries;
  if (const auto kind = field.find("kind")) {
    work.kind = kind->node();
    work.keys.erase("kind");
  } else {
    const auto names_work = [](const YamlEntry& entry) { return entry.value.is_mapping() || entry.key == "sleep"; };
    const auto count = std::ranges::count_if(entries, names_work);
    if (count == 0) static_cast<void>(field.at("kind", or_list(operator_kinds())));
    if (count > 1) field.fail(fmt::format("{} pieces of work", count), example);
    const auto found = std::ranges::find_if(entries, names_work);
    const YamlEntry entry = *found;
    entries.erase(found);
    work.kind = yaml_scalar(entry.key, entry.where);
    work.path = join_path(field.path(), entry.key);
    work.keys.where = entry.value.where;
    entries.insert(entries.end(), entry.value.entries.begin(), entry.value.entries.end());
    if (entry.value.is_scalar()) entries.push_back({"time", entry.where, entry.value});
  }
  if (const auto times = work.shape().find("repeat")) {
    work.repeat = static_cast<int>(times->integer({1, 10'000'000}));
    work.keys.erase("repeat");
  }
  return work;
}

Operator read_operator(const StatedWork& work, const Gpu& gpu) {
  const std::string& kind = work.name().text();
  const auto* const row = std::ranges::find(operator_rows, kind, &OperatorRow::kind);
  if (row == std::end(operator_rows)) {
    const std::vector<std::string>& known = operator_kinds();
    work.name().fail(fmt::format("unknown operator \"{}\"", kind),
                     did_you_mean(nearest_word(kind, known), or_list(known)));
  }
  Operator op = row->read(work.shape());
  check_attention(op, gpu, work.shape());
  check_precision(op, gpu, work.shape());
  return op;
}

}  // namespace foretrain
