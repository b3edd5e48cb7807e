#include "model/job/published_uncertainty.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "model/base/number.hpp"
#include "model/collectives/algorithm.hpp"
#include "model/cost/power.hpp"
#include "model/workload/model_config.hpp"

namespace foretrain {

namespace {

// Architectures with steps, and with products, among the shipped tables; the others' constants depend on their
// neighbours.
constexpr std::array<std::string_view, 7> architectures_of_steps = {"kepler", "pascal",    "volta",          "ampere",
                                                                    "hopper", "blackwell", "blackwell_ultra"};
constexpr std::array<std::string_view, 6> architectures_of_products = {"volta", "turing", "ampere",
                                                                       "ada",   "hopper", "blackwell"};
// Large products of H100 and L40S are off 2.7 and 3.4 times as far where no product of their generation was fitted
// (reports/docs/cross-validation.md). A step has much else in it, and small kernels their launch.
constexpr double wider_unseen = 1.5, wider_unseen_product = 3.0;

// By how much EFA, Slingshot and InfiniBand are slower than InfiniBand is predicted, nine times of ten:
// cases_collectives_between_nodes.csv with the cards' rates alone, 192 rows and 105 smaller ones.
constexpr double slower_fabric = 1.3, slower_fabric_small = 3.2;

// From here on attention is most of a step of models of usual widths: modelling choice.
constexpr std::int64_t long_sequence = 16384;

// Below these sizes the time of a collective is that of its steps, and the time of a kernel that of its launch and its
// tail, which differ most from machine to machine.
constexpr Bytes small_message(1e6), small_between_nodes(8e6);
constexpr Seconds small_kernel(1e-3);

/// A kind of measurements: nine of ten of their times are not longer than predicted by more than `slower`, nor shorter
/// by more than `faster`.
struct Kind {
  std::string_view constant, what;
  double slower = 0.0, faster = 0.0;
};

using Constants = UncertaintyConstants;

/// Seldom faster than predicted: what delays a run is of many kinds, what speeds it up is not.
Kind late(std::string_view constant, std::string_view what, double slower, const Constants& c) {
  return {constant, what, slower, c.faster};
}

Kind either_way(std::string_view constant, std::string_view what, double share) {
  return {constant, what, share, share};
}

bool is_one_of(std::span<const std::string_view> architectures, const Gpu& gpu) {
  return std::ranges::find(architectures, chip_generations[generation_of(gpu)].name) != architectures.end();
}

/// Processors, and hosts that only send, belong to no generation of GPUs.
bool has_generation(const Gpu& gpu) {
  const bool older_than_all = gpu.compute_capability < chip_generations.front().compute_capability;
  return !gpu.processor && (generation_of(gpu) > 0 || !older_than_all);
}

/// What keeps a framework from hiding time as tuned ones do; empty: nothing.
std::string_view unhidden(const Scenario& scenario, const TrainWorkload& train) {
  const Plan& plan = scenario.plan;
  if (train.code.kernels == KernelSet::unfused) return "unfused kernels";
  if (!plan.sync.overlap) return "gradient reduction without overlap";
  if (plan.tensor > 1 && !plan.tensor_overlap) return "tensor-parallel collectives without overlap";
  const auto* transformer = std::get_if<TransformerConfig>(&train.model.shape);
  return transformer != nullptr && transformer->sequence >= long_sequence ? "long sequences" : "";
}

Kind of_computing(const Scenario& scenario, const TrainWorkload& train) {
  const Constants& c = scenario.calibration.uncertainty;
  if (scenario.cluster.node.gpu.processor) return late("processor", "CPUs", c.processor, c);
  const auto* transformer = std::get_if<TransformerConfig>(&train.model.shape);
  Kind kind;
  if (std::holds_alternative<NetworkConfig>(train.model.shape)) {
    kind = late("network", "convolutional networks", c.network, c);
  } else if (transformer != nullptr && transformer->experts > 1) {
    kind = either_way("experts", "mixture of experts", c.experts);
  } else if (const std::string_view why = unhidden(scenario, train); !why.empty()) {
    kind = late("plain", why, c.plain, c);
  } else {
    kind = late("recipe", "tuned frameworks", c.recipe, c);
  }
  if (scenario.where.contains("plan.framework") || c.unnamed <= kind.slower) return kind;
  return {"unnamed", "unspecified framework", c.unnamed, kind.faster};
}

Kind of_waiting(const Scenario& scenario) {
  const Constants& c = scenario.calibration.uncertainty;
  if (has_servers(scenario.plan.sync.algorithm)) return late("servers", "parameter servers", c.servers, c);
  if (scenario.cluster.node.gpu.processor) return late("processor", "CPUs", c.processor, c);
  if (scenario.cluster.nodes > 1) return late("between_nodes", "inter-node collectives", c.between_nodes, c);
  return late("collective", "intra-node collectives", c.collective, c);
}

/// A rate of cards is stated, and neither their type nor a protocol: InfiniBand is assumed.
bool is_unknown_fabric(const Scenario& scenario) {
  const auto states = [&](std::string_view key) { return scenario.where.contains(key); };
  return states("cluster.network.nic_bandwidth") && !states("cluster.network.nic") &&
         !states("cluster.network.transport") && !states("cluster.network.efficiency");
}

Kind of_collective(const Scenario& scenario, const CollectiveWorkload& work) {
  const Constants& c = scenario.calibration.uncertainty;
  if (!has_generation(scenario.cluster.node.gpu)) return late("processor", "CPUs", c.processor, c);
  if (scenario.cluster.nodes > 1) {
    const bool is_large = work.size >= small_between_nodes;
    Kind kind = is_large ? late("between_nodes", "inter-node collectives", c.between_nodes, c)
                         : either_way("small_between_nodes", "small inter-node collectives", c.small_between_nodes);
    if (is_unknown_fabric(scenario)) {
      kind.what = "unspecified NICs";
      kind.slower = is_large ? slower_fabric : slower_fabric_small;
    }
    return kind;
  }
  if (work.size >= small_message) return late("collective", "intra-node collectives", c.collective, c);
  return late("small_collective", "small intra-node collectives", c.small_collective, c);
}

Kind of_kernel(const Scenario& scenario, Seconds time) {
  const Constants& c = scenario.calibration.uncertainty;
  const auto* work = std::get_if<OperatorWorkload>(&scenario.workload);
  const bool measured = work != nullptr && (std::holds_alternative<Matmul>(work->op.work) ||
                                            std::holds_alternative<Attention>(work->op.work));
  if (measured && work->op.precision == Precision::nvfp4) {
    return either_way("four_bit", "4-bit GEMMs", c.four_bit);
  }
  if (!measured || time < small_kernel) return either_way("small_kernel", "small kernels", c.small_kernel);
  return either_way("kernel", "GEMMs and attention", c.kernel);
}

struct Part {
  Kind kind;
  double weight = 1.0;
};

/// The range of what consists of `parts`, so many times as wide.
void set_range(const std::vector<Part>& parts, double wider, Result& result) {
  double slower = 0.0, faster = 0.0;
  for (const Part& part : parts) {
    slower += part.weight * part.kind.slower;
    faster += part.weight * part.kind.faster;
  }
  result.set_uncertainty(wider * faster, wider * slower);
  for (const auto& [kind, weight] : parts) {
    const double share = weight * (kind.slower + kind.faster) / (slower + faster);
    const std::string constant = fmt::format("uncertainty.{}", kind.constant);
    const auto same = std::ranges::find(result.uncertainty_causes, constant, &UncertaintyCause::constant);
    if (same != result.uncertainty_causes.end()) {
      same->share += share;
    } else if (share > 0.0) {
      result.uncertainty_causes.push_back({std::string(kind.what), constant, share});
    }
  }
}

void set_range_of_step(const Scenario& scenario, const TrainWorkload& train, Result& result) {
  const Gpu& gpu = scenario.cluster.node.gpu;
  const double waits =
      std::clamp(result.train()->breakdown.exposed_communication / std::max(result.time(), Seconds(1e-12)), 0.0, 1.0);
  double wider = 1.0;
  if (!has_measured_step(gpu)) {
    wider = wider_unseen;
    result.warnings.push_back(
        fmt::format("no training step on {} GPUs is among the published measurements: the interval is wider by half",
                    chip_generations[generation_of(gpu)].name));
  }
  std::vector<Part> parts = {{of_computing(scenario, train), 1.0 - waits}};
  if (waits > 0.0) parts.push_back({of_waiting(scenario), waits});
  set_range(parts, wider, result);
}

}  // namespace

bool has_measured_step(const Gpu& gpu) { return !has_generation(gpu) || is_one_of(architectures_of_steps, gpu); }

double doublings_beyond(const LearnedRange& learned, int nodes) {
  return std::log2(std::max({1.0, number(nodes) / learned.most_nodes, number(learned.least_nodes) / nodes}));
}

bool set_learned_uncertainty(const Scenario& scenario, Result& result) {
  // A doubling: nanotron's steps on 8 and 16 machines, of runs on 1 to 4 (263 rows): nine of ten lie within 1.1 and
  // 1.9 times the spread of these
  constexpr double wider_a_doubling = 0.5;
  if (!scenario.learned || result.train() == nullptr) return false;
  const LearnedRange& learned = *scenario.learned;
  const int nodes = scenario.cluster.nodes;
  const double wider = wider_a_doubling * doublings_beyond(learned, nodes);
  result.set_uncertainty(learned.spread * (1.0 + wider));
  if (wider > 0.0) {
    result.warnings.push_back(fmt::format("{} machines: {} was learned on {} to {}; the interval is wider by {:.0f} %",
                                          nodes, scenario.trainer, learned.least_nodes, learned.most_nodes,
                                          100.0 * wider));
  }
  return true;
}

void set_published_uncertainty(const Scenario& scenario, Result& result) {
  if (const auto* train = std::get_if<TrainWorkload>(&scenario.workload)) {
    set_range_of_step(scenario, *train, result);
  } else if (const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload)) {
    set_range({Part{of_collective(scenario, *collective)}}, 1.0, result);
  } else {
    const Gpu& gpu = scenario.cluster.node.gpu;
    const bool unseen = has_generation(gpu) && !is_one_of(architectures_of_products, gpu);
    const double wider = result.time() < small_kernel ? wider_unseen : wider_unseen_product;
    set_range({Part{of_kernel(scenario, result.time())}}, unseen ? wider : 1.0, result);
  }
}

}  // namespace foretrain
