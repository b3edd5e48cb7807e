#include <fmt/format.h>

#include <algorithm>

#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/scenario/workload/workload_reader.hpp"

namespace foretrain {

Precision read_precision(const MappingReader& keys) { return keys.choice_or("precision", Precision::fp32); }

namespace {

/// { m, n, k, batch (= 1), accumulate (= false), accumulate_fp32 (= false), transpose_a (= false), transpose_b (=
/// false), padded (= false), precision (= fp32) }: C[m,n] = A[m,k] · B[k,n], row by row; see Matmul
Operator read_matmul(const Field& field) {
  const MappingReader keys = field.mapping(keys::matmul);
  Matmul work;
  keys.fill(work);
  return {fmt::format("matmul {}x{}x{}", work.m, work.n, work.k), work, read_precision(keys), 1};
}

/// { batch, channels, height, width, filters, kernel, stride (= 1), pad (= 0), groups (= 1), pass (= forward),
/// precision }
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
  if (work.c % work.groups != 0 || work.k % work.groups != 0) {
    keys.fail("groups", fmt::format("{} does not divide {} channels and {} filters", work.groups, work.c, work.k),
              "a common divisor of both");
  }
  return {
      fmt::format("convolution {}x{}x{}x{}, {} filters {}x{}", work.n, work.c, work.h, work.w, work.k, work.r, work.s),
      work, read_precision(keys), 1};
}

/// { elements, inputs (= 1), outputs (= 1), flops_per_element (= 1), precision }
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

/// { size }: within device memory, every byte read once and written once
Operator read_copy(const Field& field) {
  const MappingReader keys = field.mapping(keys::copy);
  const Bytes size = keys["size"].quantity<Bytes>();
  Streaming work;
  work.read = size;
  work.written = size;
  return {"copy", work, Precision::fp32, 1};
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
