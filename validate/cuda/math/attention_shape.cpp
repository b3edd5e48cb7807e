#include "validate/cuda/math/attention_shape.hpp"

#include <algorithm>
#include <stdexcept>

namespace foretrain::gpu {

AttentionShape attention_shape(const OperatorSpec& spec) {
  for (const char* key : {"window", "lengths", "density", "splits"}) {
    if (spec.fields.count(key) != 0) {
      throw GpuError(Fault::unsupported, std::string("attention with ") + key + " has no kernel here");
    }
  }
  if (spec.flag("cache")) throw GpuError(Fault::unsupported, "attention that writes a cache has no kernel here");
  if (spec.flag("dropout")) throw GpuError(Fault::unsupported, "attention with dropout has no kernel here");
  AttentionShape shape;
  shape.batch = spec.integer("batch");
  shape.heads = spec.integer("heads");
  shape.kv_heads = spec.integer_or("kv_heads", shape.heads);
  shape.queries = spec.integer("sequence");
  shape.keys = spec.integer_or("key_sequence", shape.queries);
  shape.head_dim = spec.integer("head_dim");
  shape.causal = spec.flag("causal");
  shape.backward = spec.flag("backward");
  shape.fused_softmax = spec.flag("fused_softmax");
  shape.kind = spec.text_or("attention", "flash");
  shape.precision = spec.text_or("precision", "fp32");
  OperatorSpec forward = spec;
  forward.fields.erase("backward");
  shape.name = name_of(forward);
  if (std::min({shape.batch, shape.heads, shape.kv_heads, shape.queries, shape.keys, shape.head_dim}) < 1 ||
      shape.heads % shape.kv_heads != 0) {
    throw std::invalid_argument("attention: sizes that do not fit each other");
  }
  if (shape.causal && shape.keys < shape.queries) {
    throw GpuError(Fault::unsupported, "causal attention with more queries than keys has no kernel here");
  }
  return shape;
}

std::unique_ptr<OperatorRunner> make_attention(const OperatorSpec& spec, const RunnerSetting& setting) {
  const AttentionShape shape = attention_shape(spec);
  return shape.kind == "standard" ? make_standard_attention(shape, setting) : make_fused_attention(shape, setting);
}

}  // namespace foretrain::gpu
