#include "model/training/pricing/pass_steps.hpp"

#include <numeric>
#include <utility>

#include "model/base/number.hpp"
#include "model/parallelism/layout.hpp"

namespace foretrain {

PassSteps::PassSteps(const Scenario& scenario, const Topology& topology) : scenario_(scenario), topology_(topology) {}

PassSteps::Network::Network(const Scenario& scenario, const Topology& topology)
    : transfers(scenario, topology, sent, Extent::few_nodes) {
  transfers.take_least();
}

PassSteps::Network& PassSteps::network() {
  const int replicas = replicas_that_stand_for_all(scenario_, topology_);
  return networks_.try_emplace(replicas, scenario_, topology_).first->second;
}

PassSteps::Key PassSteps::key_of(const Model& model) const {
  const Plan& plan = scenario_.plan;
  const bool sharded = plan.zero == 3;
  return {.model = &model,
          .recompute = std::get<TrainWorkload>(scenario_.workload).recompute,
          .dispatch = plan.expert_dispatch,
          .sharded = sharded,
          .copied = sharded && plan.sync.separate_bucket_buffers,
          .gathered_again = sharded && plan.reshard_after_forward,
          .accumulation = plan.sync.accumulation,
          .divides_gradients = divides_gradients(plan),
          .gradient_precision = plan.sync.gradient_precision,
          .tensor_overlap = plan.tensor_overlap,
          .hides_exchanges = hides_exchanges(plan),
          .waits_for_slowest = plan.sync.waits_for_slowest(),
          .single_process = plan.single_process};
}

ChunkBuilder& PassSteps::builder(const Model& model, Network& network) {
  std::unique_ptr<ChunkBuilder>& known = network.builders[key_of(model)];
  if (known != nullptr) {
    known->arrange();
  } else {
    const auto& train = std::get<TrainWorkload>(scenario_.workload);
    known = std::make_unique<ChunkBuilder>(scenario_, train, model, topology_, Recipes::none, network.transfers,
                                           without_recomputation(model, LayerPricer(scenario_, train)));
  }
  return *known;
}

const std::vector<LayerCost>& PassSteps::without_recomputation(const Model& model, const LayerPricer& pricer) {
  Key key = key_of(model);
  key.recompute = Recompute::none;
  std::vector<LayerCost>& known = prices_[key];
  while (known.size() < model.layers.size()) {
    known.push_back(pricer.without_recomputation(model.layers[known.size()].layer));
  }
  return known;
}

Seconds PassSteps::kernels(const Model& model) {
  const LayerPricer pricer(scenario_, std::get<TrainWorkload>(scenario_.workload));
  const std::vector<LayerCost>& prices = without_recomputation(model, pricer);
  Seconds all;
  for (std::size_t group = 0; group < model.layers.size(); ++group) {
    const auto& [layer, repeat] = model.layers[group];
    const LayerCost cost = pricer.with_recomputation(prices[group], layer);
    all += (cost.forward.kernels + cost.recompute.kernels + cost.backward.kernels) * static_cast<double>(repeat);
  }
  return all;
}

Step PassSteps::step(const Model& model) {
  const Plan& plan = scenario_.plan;
  Network& network = this->network();
  ChunkBuilder& chunks = builder(model, network);
  Step step;
  step.schedule = plan.schedule;
  step.interleave = plan.interleave;
  step.micro_batches = micro_batches(std::get<TrainWorkload>(scenario_.workload), plan);
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    const bool as_before = stage > 0 && chunks.alike(stage - 1, stage);
    if (as_before && stage + 1 < plan.pipeline) continue;
    Step::RankClass& rank_class =
        step.rank_classes.emplace_back(as_before ? step.rank_classes.back() : Step::RankClass{});
    rank_class.stage = stage;
    if (as_before) continue;
    StageLayers sums;
    rank_class.chunks = chunks.chunks({}, stage, std::nullopt, sums);
    chunks.set_optimizer(1.0, sums, rank_class);
    // Copies that outlast backward passes do so by less where these are longer.
    if (!network.transfers.is_exact()) rank_class.optimizer.exposed = rank_class.optimizer.exposed_copies = {};
  }
  if (plan.zero == 3) keep_transfers(step, network.transfers);
  return step;
}

/// Keeps the transfers of sharded units; a bound needs only their time.
void PassSteps::keep_transfers(Step& step, const TransferTable& transfers) {
  std::map<int, int> kept;
  std::vector<int> rank_classes(step.rank_classes.size());
  std::iota(rank_classes.begin(), rank_classes.end(), 0);
  const auto keep = [&](int& transfer) {
    if (transfer < 0) return;
    const auto [known, is_new] = kept.try_emplace(transfer, static_cast<int>(step.transfers.size()));
    if (is_new) step.transfers.emplace_back().parts.push_back({{}, transfers.time(transfer, 0), rank_classes});
    transfer = known->second;
  };
  for (Step::RankClass& rank_class : step.rank_classes) {
    for (Step::Chunk& chunk : rank_class.chunks) chunk.visit_transfers(keep);
  }
}

}  // namespace foretrain
