// Catalogue GPUs and the published calibration, for tests of the cost models.
#pragma once

#include <map>
#include <string>

#include "model/cost/operator_cost.hpp"
#include "model/scenario/load/load.hpp"

namespace foretrain::test {

struct Machine {
  Gpu gpu;
  Calibration calibration;

  [[nodiscard]] OperatorCost cost(const OperatorWork& work, Precision precision) const {
    return operator_cost({"", work, precision, 1}, gpu, calibration);
  }
  /// As benchmarks measure it: before the board's power has settled.
  [[nodiscard]] OperatorCost burst(const OperatorWork& work, Precision precision) const {
    return cost_alone({{"", work, precision, 1}, 1, {.clock = Clock::boost}}, gpu, calibration);
  }
  [[nodiscard]] Seconds time(const OperatorWork& work, Precision precision) const {
    return cost(work, precision).device;
  }
};

/// The GPU of a catalogue node.
inline const Machine& machine(const std::string& node) {
  static std::map<std::string, Machine> known;
  const auto found = known.find(node);
  if (found != known.end()) return found->second;
  const Scenario scenario = load_scenario_text(
      "name: test\ncluster: { node: " + node + " }\nworkload: { operator: { kind: copy, size: 1 MB } }\n", "test");
  return known.emplace(node, Machine{scenario.cluster.node.gpu, scenario.calibration}).first->second;
}

/// Over sequences as long as their keys, with as many heads for these.
constexpr Attention attention(AttentionKind kind, std::int64_t batch, std::int64_t heads, std::int64_t length,
                              std::int64_t head_dim = 128, bool causal = false) {
  return {batch, heads, heads, length, length, head_dim, causal, kind};
}
constexpr AttentionKind attention_kinds[] = {AttentionKind::standard,         AttentionKind::flash,
                                             AttentionKind::memory_efficient, AttentionKind::flash_1,
                                             AttentionKind::flash_2,          AttentionKind::flash_3};

}  // namespace foretrain::test
