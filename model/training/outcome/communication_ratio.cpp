#include "model/training/outcome/communication_ratio.hpp"

#include <algorithm>

#include "model/base/number.hpp"
#include "model/parallelism/layout.hpp"
#include "model/training/transfers/known_transfers.hpp"

namespace foretrain {

namespace {

/// Own bandwidth of a ring through the first stage's replicas, at its narrowest hop.
BytesPerSecond ring_bandwidth(const Scenario& scenario, const Topology& topology) {
  const auto known = KnownTransfers::of(scenario, topology, RankLayout(scenario.plan, scenario.cluster));
  const RankGroups& groups = known->groups(GroupKind::gradients, 0, topology).ranks;
  BytesPerSecond narrowest = BytesPerSecond::infinity();
  bool leaves_node = false;
  const std::vector<int>& group = groups.front();
  for (std::size_t i = 0; i + 1 < group.size(); ++i) {
    if (topology.node_of(group[i]) == topology.node_of(group[i + 1])) {
      narrowest = std::min(narrowest, topology.route(group[i], group[i + 1]).bandwidth);
    } else {
      leaves_node = true;
    }
  }
  if (!leaves_node) return narrowest;
  double on_first_node = 0.0;
  for (const RankGroups::Family& family : groups.families()) {
    on_first_node += number(std::ranges::count_if(family.shifts, [&](int shift) {
      return topology.node_of(family.first.front() + shift) == topology.node_of(group.front());
    }));
  }
  const Network& network = scenario.cluster.network;
  const double efficiency = network.efficiency * network.share_left(scenario.cluster.nodes);
  const BytesPerSecond cards = network.nic_bandwidth * (efficiency * network.nics_per_node / network.oversubscription);
  return std::min(narrowest, cards / on_first_node);
}

}  // namespace

std::optional<CommunicationRatio> communication_ratio(const Scenario& scenario, const TrainWorkload& train,
                                                      const Step& step, const Topology& topology,
                                                      const Breakdown& breakdown,
                                                      const std::map<std::string, CommunicationTime>& communication) {
  const Plan& plan = scenario.plan;
  if (plan.data * plan.context < 2) return std::nullopt;
  const Seconds at_peak = step.model_flops_per_gpu / peak_rate(plan, scenario.cluster, train.precision);
  const BytesPerSecond bandwidth = ring_bandwidth(scenario, topology);
  Seconds transfers = step.gradient_norm;
  for (const auto& named : communication) {
    const bool of_parameters = std::ranges::any_of(step.transfers, [&named](const Step::Transfer& transfer) {
      return is_of_parameters(transfer.kind) && transfer.name == named.first;
    });
    if (of_parameters || servers_update(plan)) transfers += named.second.total;
  }
  const bool possible = at_peak.value() > 0.0 && bandwidth.value() > 0.0 && breakdown.compute.value() > 0.0;
  if (!possible) return std::nullopt;
  const Bytes gradients = bytes_per_element(plan.sync.gradient_precision) * step.parameters_per_gpu;
  return CommunicationRatio{gradients * 2.0 / bandwidth / at_peak, transfers / breakdown.compute};
}

}  // namespace foretrain
