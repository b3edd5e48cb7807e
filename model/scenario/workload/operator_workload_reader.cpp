#include <cmath>

#include "model/base/text.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/scenario/workload/workload_reader.hpp"
#include "model/workload/stated_operators.hpp"

namespace foretrain {

namespace {

/// fp32 where it is not stated.
Precision read_precision(const MappingReader& keys) { return keys.value_or("precision", Precision::fp32); }

/// C[m,n] = A[m,k] · B[k,n], row by row; see Matmul.
Operator read_matmul(const MappingReader& keys) {
  auto work = keys.filled<Matmul>();
  return {fmt::format("matmul {}x{}x{}", work.m, work.n, work.k), work, read_precision(keys), 1};
}

Operator read_convolution(const MappingReader& keys) {
  auto work = keys.filled<Convolution>();
  std::tie(work.r, work.s) = read_pair(keys["kernel"]);
  std::pair<std::int64_t, std::int64_t> pad{0, 0};
  if (const auto value = keys.find("pad")) pad = read_pair(*value);
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

/// Makes an operator of a shape that rows fill.
template <typename Shape, Operator (*make)(const Shape&)>
Operator read_shape(const MappingReader& keys) {
  return make(keys.filled<Shape>());
}

template <StreamingKind kind>
Operator streaming(const ElementwiseShape& shape) {
  return shape.made(kind);
}

Operator read_pooling(const MappingReader& keys) {
  auto shape = keys.filled<PoolingShape>();
  keys.fail_if(shape.kernel > std::min(shape.height, shape.width) + 2 * shape.pad, "kernel",
               "larger than the padded input", "a kernel that fits");
  return pooling(shape);
}

/// Within device memory, every byte read once and written once.
Operator read_copy(const MappingReader& keys) {
  Streaming work;
  work.read = work.written = keys["size"].as<Bytes>();
  return {"copy", work, Precision::fp32, 1};
}

/// Reads on the GPU, once through the working set where their number is not stated.
Operator read_memory_access(const MappingReader& keys) {
  auto work = keys.filled<MemoryAccess>();
  keys.fail_if(work.element > work.working_set, "working_set", "smaller than one element",
               "at least the element's size");
  const bool strided = work.pattern == AccessPattern::strided;
  if (strided) {
    work.stride = keys["stride"].as<Bytes>();
    if (work.stride < work.element) keys.fail("stride", "shorter than one element", "at least the element's size");
  }
  const double once = std::max(1.0, std::floor(work.working_set / (strided ? work.stride : work.element)));
  work.reads = keys.value_or("reads", once);
  return {fmt::format("{:g} reads", work.reads), work, Precision::fp32, 1};
}

struct OperatorRow {
  std::string_view kind;
  Operator (*read)(const MappingReader& keys);
};
constexpr OperatorRow operator_rows[] = {
    {"matmul", read_matmul},
    {"convolution", read_convolution},
    {"attention", read_attention},
    {"elementwise", read_shape<ElementwiseShape, streaming<StreamingKind::elementwise>>},
    {"reduction", read_shape<ElementwiseShape, streaming<StreamingKind::reduction>>},
    {"copy", read_copy},
    {"batch_norm", read_shape<BatchNormShape, batch_norm>},
    {"layer_norm", read_shape<RowsShape, layer_norm>},
    {"softmax", read_shape<RowsShape, softmax>},
    {"pooling", read_pooling},
    {"embedding", read_shape<EmbeddingShape, embedding>},
    {"cross_entropy", read_shape<RowsShape, cross_entropy>},
    {"optimizer", read_shape<UpdateShape, optimizer_update>},
    {"gradient_clipping", read_shape<UpdateShape, gradient_clipping>},
    {"memory_access", read_memory_access}};

std::vector<std::string> operator_kinds() {
  std::vector<std::string> kinds;
  for (const OperatorRow& row : operator_rows) kinds.emplace_back(row.kind);
  return kinds;
}

}  // namespace

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
    work.repeat = times->as<int>({.range = {1, 10'000'000}});
    work.keys.erase("repeat");
  }
  return work;
}

Operator read_operator(const StatedWork& work, const Gpu& gpu) {
  const std::string& kind = work.name().text();
  const auto* const row = std::ranges::find(operator_rows, kind, &OperatorRow::kind);
  if (row == std::end(operator_rows)) {
    const std::vector<std::string> known = operator_kinds();
    work.name().fail(fmt::format("unknown operator \"{}\"", kind),
                     did_you_mean(nearest_word(kind, known), or_list(known)));
  }
  Operator op = row->read(work.shape().mapping(keys::variant_of(keys::operation, kind)));
  check_attention(op, gpu, work.shape());
  check_precision(op, gpu, work.shape());
  return op;
}

}  // namespace foretrain
