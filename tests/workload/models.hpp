// Models of the catalogue, and their operators by name.
#pragma once

#include "model/scenario/model/model_reader.hpp"
#include "model/workload/build.hpp"
#include "model/workload/transformer.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

inline ModelConfig preset(const std::string& name) {
  const YamlNode file = yaml_scalar(std::string(FORETRAIN_SOURCE_DIR "/scenarios/models/") + name + ".yaml", {});
  return read_model(Field(file, "model"));
}

inline TransformerConfig transformer_preset(const std::string& name) {
  return std::get<TransformerConfig>(preset(name).shape);
}

inline const Operator& named(const std::vector<Operator>& ops, const std::string& name) {
  const auto op = std::ranges::find(ops, name, &Operator::name);
  if (op == ops.end()) throw std::logic_error("no operator " + name);
  return *op;
}

inline const Matmul& product(const std::vector<Operator>& ops, const std::string& name) {
  return std::get<Matmul>(named(ops, name).work);
}

inline const Streaming& loop(const std::vector<Operator>& ops, const std::string& name) {
  return std::get<Streaming>(named(ops, name).work);
}

/// Bytes that a loop reads and writes.
inline std::pair<double, double> moved(const std::vector<Operator>& ops, const std::string& name) {
  return {loop(ops, name).read.value(), loop(ops, name).written.value()};
}

struct Widths {
  std::int64_t layers, hidden, heads, kv_heads, ffn_hidden, vocabulary, sequence;
};

inline TransformerConfig transformer(TransformerFamily family, const Widths& widths) {
  TransformerConfig c;
  c.family = family;
  c.layers = widths.layers;
  c.hidden = widths.hidden;
  c.heads = widths.heads;
  c.kv_heads = widths.kv_heads;
  c.head_dim = widths.hidden / widths.heads;
  c.ffn_hidden = widths.ffn_hidden;
  c.vocabulary = widths.vocabulary;
  c.sequence = widths.sequence;
  c.gated_ffn = family == TransformerFamily::llama;
  c.tied_embeddings = c.biases = !c.gated_ffn;
  return c;
}

/// The first behind the embedding.
inline Layer block_of(const TransformerConfig& config, const BuildOptions& options = {}) {
  return build_transformer(config, "test", options).layers[1].layer;
}

/// FLOPs of all products, convolutions and attention of a pass.
inline double product_flops(const std::vector<Operator>& ops) {
  double sum = 0.0;
  for (const Operator& op : ops) sum += std::holds_alternative<Streaming>(op.work) ? 0.0 : flops(op).value();
  return sum;
}

}  // namespace foretrain::test
