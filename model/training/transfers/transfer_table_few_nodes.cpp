// Which nodes transfers are lowered on: all of the cluster's, or the few of each stage that stand for all.
#include <algorithm>
#include <numeric>

#include "model/base/hash.hpp"
#include "model/base/session.hpp"
#include "model/training/transfers/transfer_table.hpp"

namespace foretrain {

namespace {

/// Other users of the nodes, and all that needs every one of them, are not for few.
bool all_fare_alike(const Scenario& scenario, const Topology& topology) {
  const Cluster& cluster = scenario.cluster;
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  const auto* shape = std::get_if<TransformerConfig>(&train.model.shape);
  const bool even_experts = shape != nullptr ? shape->expert_imbalance == 1.0 : scenario.plan.expert == 1;
  const bool nodes_alike = cluster.groups.empty() && cluster.faults.empty() && scenario.plan.placement.empty() &&
                           std::holds_alternative<SingleSwitch>(cluster.network.fabric.shape);
  return even_experts && nodes_alike && !topology.limits_connections() && scenario.background.empty() &&
         scenario.jobs.empty() && !cluster.jitter && !scenario.plan.split && !train.checkpoint;
}

/// The first nodes of a topology, by its serial number.
struct FewNodesKey {
  using Value = const Topology;
  std::uint64_t whole;
  int nodes;

  bool operator==(const FewNodesKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(whole, nodes); }
  [[nodiscard]] std::size_t bytes(const Topology&) const { return 100'000; }
};

}  // namespace

/// Replicas on three nodes of each stage, or three replicas of several nodes, if gradients pass round all nodes of a
/// stage; else all.
int replicas_that_stand_for_all(const Scenario& scenario, const Topology& topology) {
  const Plan& plan = scenario.plan;
  const Cluster& cluster = scenario.cluster;
  // So many neighbouring GPUs of a stage repeat themselves: whole replicas, with all experts and shards.
  const int ranks = std::lcm(std::lcm(plan.context, plan.expert), std::max(plan.shard, 1));
  const int period = plan.tensor * ranks, node = cluster.gpus_per_node;
  const bool fills_nodes =
      (node % period == 0 || period % node == 0) && plan.data * plan.context * plan.tensor % node == 0;
  const bool in_a_row = plan.order == Plan{}.order && plan.schedule != PipelineSchedule::dualpipe;
  const bool by_library = !cluster.nccl.none() && !cluster.node.gpu.processor &&
                          plan.sync.algorithm == SyncAlgorithm::automatic && !plan.sync.has_owners();
  if (!fills_nodes || !in_a_row || !by_library || !all_fare_alike(scenario, topology)) return plan.data;
  return std::min(3 * std::max(1, node / period) * (ranks / plan.context), plan.data);
}

RankLayout layout_on(const Scenario& scenario, const Topology& topology, Extent extent) {
  Plan plan = scenario.plan;
  if (extent == Extent::few_nodes) plan.data = replicas_that_stand_for_all(scenario, topology);
  return RankLayout(plan, scenario.cluster);
}

Topology topology_of(const RankLayout& layout, const Scenario& scenario, const Topology& whole) {
  if (layout.data() == scenario.plan.data) return whole;
  const int nodes = layout.gpus() / scenario.cluster.gpus_per_node;
  return *session().known(FewNodesKey{whole.serial(), nodes}, [&] {
    Cluster few = scenario.cluster.at_its_size();
    few.nodes = nodes;
    return Topology(few);
  });
}

}  // namespace foretrain
