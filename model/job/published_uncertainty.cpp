#include "model/job/published_uncertainty.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "model/collectives/algorithm.hpp"
#include "model/cost/power.hpp"
#include "model/workload/model_config.hpp"

namespace foretrain {

namespace {

// Architectures with steps among the shipped tables; the others' constants rest on products or on their neighbours.
constexpr std::array<std::string_view, 6> measured_architectures = {"kepler", "pascal", "volta",
                                                                    "ampere", "hopper", "blackwell"};
constexpr double wider_unseen = 1.5;

// From here on attention is most of a step of models of usual widths: modelling choice.
constexpr std::int64_t long_sequence = 16384;

// Below these sizes the time of a collective is that of its steps, which differs most from machine to machine.
constexpr Bytes small_message(1e6), small_between_nodes(8e6);

bool is_blackwell(const Gpu& gpu) { return chip_generations[generation_of(gpu)].name == "blackwell"; }

double kernels_share(const Scenario& scenario, const TrainWorkload& train) {
  const UncertaintyConstants& c = scenario.calibration.uncertainty;
  const Gpu& gpu = scenario.cluster.node.gpu;
  if (gpu.processor) return c.processor;
  if (std::holds_alternative<NetworkConfig>(train.model.shape)) {
    return uses_tensor_cores(gpu, train.precision) ? c.mixed_network : c.network;
  }
  double share = c.train;
  const auto at_least = [&share](double other) { share = std::max(share, other); };
  if (bytes_per_element(train.precision) < bytes_per_element(Precision::fp16)) at_least(c.narrow);
  if (is_blackwell(gpu)) at_least(c.blackwell);
  if (train.code.kernels == KernelSet::plain) at_least(c.plain);
  const auto* transformer = std::get_if<TransformerConfig>(&train.model.shape);
  if (transformer != nullptr && transformer->sequence >= long_sequence) at_least(c.long_sequence);
  return share;
}

double communication_share(const Scenario& scenario) {
  const UncertaintyConstants& c = scenario.calibration.uncertainty;
  if (has_servers(scenario.plan.sync.algorithm)) return c.servers;
  return scenario.cluster.nodes > 1 ? c.between_nodes : c.collective;
}

double collective_share(const Scenario& scenario, const CollectiveWorkload& work) {
  const UncertaintyConstants& c = scenario.calibration.uncertainty;
  if (scenario.cluster.node.gpu.processor) return c.processor;
  if (scenario.cluster.nodes > 1) return work.size < small_between_nodes ? c.small_between_nodes : c.between_nodes;
  return work.size < small_message ? c.small_collective : c.collective;
}

double step_share(const Scenario& scenario, const TrainWorkload& train, Result& result) {
  const double waits = result.train()->breakdown.exposed_communication / std::max(result.time(), Seconds(1e-12));
  const double kernels = kernels_share(scenario, train);
  const double share =
      waits > 0.0 ? kernels + std::min(waits, 1.0) * (communication_share(scenario) - kernels) : kernels;
  const Gpu& gpu = scenario.cluster.node.gpu;
  const std::string_view architecture = chip_generations[generation_of(gpu)].name;
  if (gpu.processor || std::ranges::find(measured_architectures, architecture) != measured_architectures.end()) {
    return share;
  }
  result.warnings.push_back(fmt::format(
      "no training step on {} GPUs is among the published measurements: the interval is wider by half", architecture));
  return wider_unseen * share;
}

}  // namespace

bool set_learned_uncertainty(const Scenario& scenario, Result& result) {
  constexpr double wider_elsewhere = 1.5;  // modelling choice
  if (!scenario.learned || result.train() == nullptr) return false;
  const LearnedRange& learned = *scenario.learned;
  const int nodes = scenario.cluster.nodes;
  const bool beyond = nodes < learned.least_nodes || nodes > learned.most_nodes;
  result.set_uncertainty(learned.spread * (beyond ? wider_elsewhere : 1.0));
  if (beyond) {
    result.warnings.push_back(fmt::format("{} machines: {} was learned on {} to {}; the interval is wider by half", nodes,
                                          scenario.trainer, learned.least_nodes, learned.most_nodes));
  }
  return true;
}

void set_published_uncertainty(const Scenario& scenario, Result& result) {
  if (const auto* train = std::get_if<TrainWorkload>(&scenario.workload)) {
    result.set_uncertainty(step_share(scenario, *train, result));
  } else if (const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload)) {
    result.set_uncertainty(collective_share(scenario, *collective));
  } else {
    const UncertaintyConstants& c = scenario.calibration.uncertainty;
    result.set_uncertainty(is_blackwell(scenario.cluster.node.gpu) ? std::max(c.kernel, c.blackwell) : c.kernel);
  }
}

}  // namespace foretrain
