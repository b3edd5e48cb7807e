#include "model/workload/plain_kernels.hpp"

#include "model/base/number.hpp"

namespace foretrain {

namespace {

constexpr double wide = 4.0;  // bytes of an fp32 number
using Kind = StreamingKind;

StreamBytes cast_up(double e) { return {"cast to fp32", Kind::elementwise, e, wide, wide, e}; }
StreamBytes cast_down(double e) { return {"cast from fp32", Kind::elementwise, wide, e, e, wide}; }

// Of fp32 numbers, step by step as autograd runs it: the weight's product gives dx̂ and reads both factors for its own
// gradient, which is summed up over tokens. So does the scale's, over rows. The square's gradient is 2 · x¹ · d, three
// kernels, behind the mean's, which is written out; its part is added to dx. Broadcast factors are taken one at a time.
std::vector<StreamBytes> wide_rms_norm() {
  constexpr double w = wide;
  return {{"square", Kind::elementwise, w, w, 6.0 * w, 4.0 * w, true, 4},
          {"mean", Kind::reduction, w, 0.0, 0.0, w, false},
          {"scaling", Kind::elementwise, w, w, 4.0 * w, 2.0 * w, true, 3, OperatorRole::any, 1.0, 1.0},
          {"weight", Kind::elementwise, w, w, 4.0 * w, 2.0 * w, true, 3, OperatorRole::any, 1.0, 1.0}};
}

/// Rotation of queries and keys as complex fp32 numbers, which no compiler fuses ("Torchinductor does not support code
/// generation for complex operators": PyTorch, torch/_inductor/lowering.py).
std::vector<StreamBytes> plain_rotary_embedding(Bytes element) {
  const double e = element.value();
  std::vector<StreamBytes> kernels = {
      cast_up(e), {"rotation", Kind::elementwise, wide, wide, wide, wide}, cast_down(e)};
  for (StreamBytes& kernel : kernels) kernel.fusible = false;
  return kernels;
}

}  // namespace

void append_streams(Layer& layer, const std::string& of, const std::vector<StreamBytes>& streams, double elements,
                    const BuildOptions& options) {
  const auto kernel = [&](const StreamBytes& s, double read, double written, double singles, const char* suffix,
                          int kernels) {
    const Streaming work{s.kind,
                         Bytes(read * elements),
                         Bytes(written * elements),
                         Flops(elements),
                         s.fusible,
                         options.compiled ? 0.0 : singles * elements};
    return in_role(s.role, {of + " " + s.name + suffix, work, storage_precision(options.precision), kernels});
  };
  for (const StreamBytes& s : streams) {
    if (s.forward_read + s.forward_written > 0.0) {
      layer.forward.push_back(kernel(s, s.forward_read, s.forward_written, s.forward_singles, "", 1));
    }
    if (s.backward_read + s.backward_written > 0.0) {
      layer.backward.push_back(
          kernel(s, s.backward_read, s.backward_written, s.backward_singles, " backward", s.backward_kernels));
    }
  }
}

std::vector<StreamBytes> plain_bias(Bytes element) {
  const double e = element.value();
  return {{"addition", Kind::elementwise, e, e, 0.0, 0.0}, {"sum", Kind::reduction, 0.0, 0.0, e, 0.0, false}};
}

// The norm reads x and writes y; backward it reads dy and x twice (input; scale and shift) and writes dx.
std::vector<StreamBytes> plain_layer_norm(Bytes element) {
  const double e = element.value();
  return {{"kernel", Kind::reduction, e, e, 3.0 * e, e, false, 2}};
}

// Autocast keeps the casts of parameters alone (ATen/autocast_mode.cpp, cached_cast: leaves that require gradients).
std::vector<StreamBytes> plain_input_casts(Bytes element, int products) {
  const double e = element.value(), count = products;
  const StreamBytes cast{"input cast", Kind::elementwise, wide, e, e, wide, true, 1, OperatorRole::any, 0.0, 1.0};
  std::vector<StreamBytes> kernels(at_index(products), cast);
  if (products > 1) {
    kernels.push_back({"gradient sum", Kind::elementwise, 0.0, 0.0, 2.0 * wide * (count - 1.0), wide * (count - 1.0),
                       true, products - 1});
  }
  return kernels;
}

// A sum takes the wider of its operands' types. Backward: the branch's gradient is narrowed, and what comes along the
// branch is added to what passes by it.
std::vector<StreamBytes> plain_wide_residual(Bytes element) {
  const double e = element.value();
  return {{"sum", Kind::elementwise, wide + e, wide, wide, e, true, 1, OperatorRole::any, 1.0, 0.0},
          {"gradient sum", Kind::elementwise, 0.0, 0.0, 2.0 * wide, wide}};
}

// x · rsqrt(mean(x²) + ε) in fp32, then · weight; backward step by step as of fp32 numbers.
std::vector<StreamBytes> plain_rms_norm(Bytes element) {
  const double e = element.value();
  std::vector<StreamBytes> kernels = wide_rms_norm();
  if (e == wide) return kernels;
  kernels.back() = {"weight", Kind::elementwise, e, e, 4.0 * e, 2.0 * e, false, 3, OperatorRole::any, 1.0, 1.0};
  kernels.insert(kernels.end() - 1, cast_down(e));
  kernels.insert(kernels.begin(), cast_up(e));
  return kernels;
}

std::vector<StreamBytes> plain_gated_activation(Bytes element) {
  const double e = element.value();
  return {{"silu", Kind::elementwise, e, e, 2.0 * e, e},
          {"product", Kind::elementwise, 2.0 * e, e, 4.0 * e, 2.0 * e, false, 2}};
}

// Standard attention already counts a softmax that reads and writes e per score (backward: reads 2 e, writes e).
std::vector<StreamBytes> plain_scores(Bytes element, bool in_fp32) {
  const double e = element.value();
  std::vector<StreamBytes> kernels = {{"scaling", Kind::elementwise, e, e, e, e},
                                      {"mask", Kind::elementwise, e, e, 0.0, 0.0}};
  if (in_fp32 && e < wide) {
    const double more = wide - e;
    kernels.push_back(cast_up(e));
    kernels.push_back(
        {"softmax in fp32", Kind::elementwise, more, more, 2.0 * more, more, true, 1, OperatorRole::softmax});
    kernels.push_back(cast_down(e));
  }
  return kernels;
}

std::vector<StreamBytes> plain_table_gradient(bool shared) {
  if (!shared) return {{"gradient", Kind::elementwise, 0.0, 0.0, 0.0, wide, false}};
  return {{"gradient", Kind::elementwise, 0.0, 0.0, 2.0 * wide, 2.0 * wide, false, 2}};
}

void append_plain_copies(Layer& layer, const TransformerConfig& config, const BuildOptions& options, double queries,
                         double keys) {
  const double e = bytes_per_element(storage_precision(options.precision)).value();
  if (options.attention == AttentionKind::standard) {
    const double all = 2.0 * (queries + keys);  // queries, keys, values, and the result
    append_streams(layer, "head", {{"transposes", Kind::elementwise, e, e, e, e}}, all, options);
  }
  if (keys < queries) {  // keys and values, each written as often as queries share them
    const double read = e * keys / queries;
    append_streams(layer, "key-value", {{"repetition", Kind::elementwise, read, e, e, read, true, 2}}, 2.0 * queries,
                   options);
  }
  if (config.family == TransformerFamily::llama && !options.code.fuses(Fusion::rotary)) {
    append_streams(layer, "rotary embedding", plain_rotary_embedding(Bytes(e)), queries + keys, options);
  }
}

}  // namespace foretrain
