#include "validate/export/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/words.hpp"

namespace foretrain {

namespace {

using Texts = std::map<std::string, std::string>;

void add_flag(Texts& fields, const char* key, bool value) {
  if (value) fields.emplace(key, "true");
}

Texts stated_fields(const Matmul& w) {
  Texts fields = {{"m", std::to_string(w.m)}, {"n", std::to_string(w.n)}, {"k", std::to_string(w.k)}};
  if (w.batch > 1) fields.emplace("batch", std::to_string(w.batch));
  add_flag(fields, "accumulate", w.accumulate);
  add_flag(fields, "accumulate_fp32", w.accumulate_fp32);
  add_flag(fields, "transpose_a", w.transpose_a);
  add_flag(fields, "transpose_b", w.transpose_b);
  add_flag(fields, "padded", w.padded);
  return fields;
}

/// The least padding on each side that leads from one extent to the other.
std::int64_t padding(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  const std::int64_t missing = (out - 1) * stride + kernel - in;
  const std::int64_t pad = std::max<std::int64_t>(0, (missing + 1) / 2);
  if ((in + 2 * pad - kernel) / stride + 1 != out) {
    throw NotReplayable(fmt::format("a convolution from {} to {} pixels by a kernel of {}", in, out, kernel));
  }
  return pad;
}

std::string pair_text(std::int64_t height, std::int64_t width) {
  return height == width ? std::to_string(height) : fmt::format("[{},{}]", height, width);
}

Texts stated_fields(const Convolution& w) {
  Texts fields = {{"batch", std::to_string(w.n)},      {"channels", std::to_string(w.c)},
                  {"height", std::to_string(w.h)},     {"width", std::to_string(w.w)},
                  {"filters", std::to_string(w.k)},    {"kernel", pair_text(w.r, w.s)},
                  {"stride", std::to_string(w.stride)}};
  fields.emplace("pad", pair_text(padding(w.h, w.p, w.r, w.stride), padding(w.w, w.q, w.s, w.stride)));
  if (w.groups > 1) fields.emplace("groups", std::to_string(w.groups));
  if (w.pass == ConvolutionPass::data_gradient) fields.emplace("pass", "data_gradient");
  if (w.pass == ConvolutionPass::weight_gradient) fields.emplace("pass", "weight_gradient");
  return fields;
}

Texts stated_fields(const Attention& w) {
  if (w.packing) throw NotReplayable("attention over packed sequences");
  if (w.biased) throw NotReplayable("attention with a bias");
  if (w.cached) throw NotReplayable("attention that writes a cache");
  Texts fields = {{"batch", std::to_string(w.batch)},       {"heads", std::to_string(w.heads)},
                  {"kv_heads", std::to_string(w.kv_heads)}, {"sequence", std::to_string(w.query_length)},
                  {"head_dim", std::to_string(w.head_dim)}, {"attention", std::string(name(w.kind))}};
  if (w.key_length != w.query_length) fields.emplace("key_sequence", std::to_string(w.key_length));
  if (w.window > 0) fields.emplace("window", std::to_string(w.window));
  if (w.density < 1.0) fields.emplace("density", fmt::format("{}", w.density));
  if (!w.native && w.kind == AttentionKind::flash) fields.emplace("native", "false");
  if (w.splits > 0 && w.kind == AttentionKind::flash_1) fields.emplace("splits", std::to_string(w.splits));
  if (w.engine_by_default()) fields.emplace("cache", "false");
  add_flag(fields, "causal", w.causal);
  add_flag(fields, "backward", w.backward);
  const bool standard = w.kind == AttentionKind::standard;  // other kernels do both on the way, at no cost
  add_flag(fields, "dropout", standard && w.dropout);
  add_flag(fields, "fused_softmax", standard && w.fused_softmax);
  return fields;
}

std::string whole(double value) { return fmt::format("{:.0f}", std::round(value)); }

Texts stated_fields(const Streaming& w) {
  return {{"read", whole(w.read.value())}, {"written", whole(w.written.value())}, {"flops", whole(w.flops.value())}};
}

template <typename Other>
Texts stated_fields(const Other& /*work*/) {
  throw NotReplayable(fmt::format("the operator {}", Other::word));
}

}  // namespace

KernelWork stated(const Operator& op) {
  KernelWork result{op.name, "traffic", std::visit([](const auto& work) { return stated_fields(work); }, op.work)};
  if (!std::holds_alternative<Streaming>(op.work)) {
    result.kind = std::visit([](const auto& work) { return std::string(work.word); }, op.work);
    result.fields.emplace("precision", std::string(name(op.precision)));
  }
  return result;
}

}  // namespace foretrain
