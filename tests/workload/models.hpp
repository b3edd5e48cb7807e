// Models of the catalogue, and their operators by name.
#pragma once

#include "model/scenario/model/model_reader.hpp"
#include "model/workload/build.hpp"
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

/// FLOPs of all products, convolutions and attention of a pass.
inline double product_flops(const std::vector<Operator>& ops) {
  double sum = 0.0;
  for (const Operator& op : ops) sum += std::holds_alternative<Streaming>(op.work) ? 0.0 : flops(op).value();
  return sum;
}

}  // namespace foretrain::test
