// Dispatch of tokens to experts in a step: overlap, rails, and waits.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "model/training/pricing/layer_cost.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

/// Four nodes of eight, two stages, experts over 16 ranks of two nodes; eight micro-batches, launched as graphs.
Scenario experts(const std::vector<std::string>& changes) {
  return load_scenario_text(R"(
cluster: { node: dgx-h100, nodes: 4 }
workload:
  train:
    model: { family: llama, layers: 8, hidden: 4096, heads: 32, vocabulary: 32000, sequence: 4096, ffn_hidden: 1536,
             experts: 64, experts_per_token: 8 }
    global_batch: 128
    precision: bf16
plan: { pipeline: 2, expert: 16, zero: 1, execution: cuda_graph }
)",
                            "experts.yaml", changes);
}

double step(const std::vector<std::string>& changes) { return estimate(experts(changes)).time().value(); }

LayerCalls calls_of(const std::vector<std::string>& changes) {
  const BuiltStep b(experts(changes));
  std::vector<Step::Transfer> known;
  TransferTable transfers(b.scenario, b.topology, known);
  const LayerPricer pricer(b.scenario, b.train());
  const Layer& block = b.model.layers[1].layer;
  return pricer.calls(block, pricer.price(block), 0, transfers);
}

}  // namespace

TEST_CASE("interleaving alone hides no tokens; what hides them is said") {
  // Two exchanges a pass, there and back.
  for (const char* change : {"plan.interleave=1", "plan.interleave=2"}) {
    CHECK(calls_of({change}).forward.between.size() == 2);
    CHECK(calls_of({change}).forward.exchanges.empty());
    CHECK(calls_of({change, "plan.expert_comm_overlap=true"}).forward.exchanges.size() == 2);
    CHECK(step({change, "plan.expert_comm_overlap=true"}) < step({change}));
  }
}

TEST_CASE("hidden tokens need kernels to hide behind") {
  // One micro-batch has no other beside it: nothing is gained. What hides is at most the kernels' own length: on a
  // network of a tenth of the speed, the rest is waited for, and each of eight micro-batches gains what its kernels
  // take.
  const std::vector<std::string> alone = {"workload.train.global_batch=16"};
  CHECK(step(with(alone, "plan.expert_comm_overlap=true")) == Approx(step(alone)));
  const std::vector<std::string> chunks = {"workload.train.global_batch=16", "plan.interleave=2"};
  CHECK(step(with(chunks, "plan.expert_comm_overlap=true")) == Approx(step(chunks)));
  // A ring's keys and values hide behind the pass's own attention, and are no gain of another micro-batch.
  const std::vector<std::string> ring = {"workload.train.global_batch=8", "plan.context=2", "plan.data=8"};
  CHECK(step(with(ring, "plan.expert_comm_overlap=true")) == Approx(step(ring)).epsilon(1e-3));
  // Two have: better, by less than where there are eight.
  const std::vector<std::string> two = {"workload.train.global_batch=32"};
  const double of_two = step(with(two, "plan.expert_comm_overlap=true")) / step(two);
  CHECK(of_two < 1.0);
  CHECK(of_two > step({"plan.expert_comm_overlap=true"}) / step({}));
  const std::vector<std::string> slow = {"cluster.network.nic_bandwidth=20 Gbit/s"};
  const BuiltStep b(experts(with(slow, "plan.expert_comm_overlap=true"))), exposed(experts(slow));
  const TimeBreakdown hidden = b.step.rank_classes.front().chunks.front().time(PassKind::forward),
                      waits = exposed.step.rank_classes.front().chunks.front().time(PassKind::forward);
  CHECK(hidden.total() < waits.total());
  CHECK(hidden.communication() > Seconds(0.0));
  CHECK((waits.communication() - hidden.communication()).value() <= hidden.compute.value() * 1.0001);
  // Beside tokens kernels take longer.
  CHECK(hidden.compute > waits.compute);
}

TEST_CASE("forwarded tokens cross no spine of a rail fabric, others do") {
  // Rails: card i of every node on leaf i. Tokens that stay on their rail never climb, whatever the spine carries.
  const auto on_rails = [](const char* oversubscription, const char* dispatch, const char* nccl = "2.11") {
    return step(
        {std::string("cluster.network.fabric={kind: fat_tree, nodes_per_leaf: 4, rails: true, oversubscription: ") +
             oversubscription + "}",
         std::string("plan.expert_dispatch=") + dispatch, std::string("cluster.nccl=") + nccl, "plan.pipeline=1",
         "plan.expert=32"});
  };
  CHECK(on_rails("8", "forwarded") == Approx(on_rails("1", "forwarded")).epsilon(1e-6));
  CHECK(on_rails("8", "deduplicated") > 1.01 * on_rails("1", "deduplicated"));
  CHECK(on_rails("8", "all_to_all") > 1.01 * on_rails("1", "all_to_all"));
  // From 2.12 on NCCL itself forwards every message to the GPU on the receiver's rail.
  CHECK(on_rails("8", "all_to_all", "2.12") == Approx(on_rails("1", "all_to_all", "2.12")).epsilon(1e-6));
  CHECK(on_rails("2", "forwarded") <= on_rails("2", "deduplicated") * 1.0001);
  // And by the bytes on the network: once to a node is less than every copy.
  const auto every_copy = step({"plan.expert_dispatch=all_to_all"});
  CHECK(step({"plan.expert_dispatch=forwarded"}) < every_copy);
  CHECK(step({"plan.expert_dispatch=deduplicated"}) < every_copy);
}

TEST_CASE("imbalance loads kernels and network") {
  // Of the same kernels, the exchanges take up to 1.5 times as long.
  const auto inside = [](const std::vector<std::string>& changes) {
    const BuiltStep b(experts(changes));
    return b.step.rank_classes.front().chunks.front().passes[PassKind::forward].time;
  };
  const TimeBreakdown even = inside({"plan.expert_dispatch=all_to_all"}),
                      hot = inside({"plan.expert_dispatch=all_to_all", "workload.train.model.expert_imbalance=1.5"});
  CHECK(hot.compute > even.compute);
  CHECK(hot.communication().value() == Approx(1.5 * even.communication().value()).epsilon(0.02));
}

TEST_CASE("experts that tensor ranks hold whole exchange tokens among all of these") {
  // Two tensor ranks and eight beside them hold eighths of two halves of the experts: groups of 16, not of 8.
  const BuiltStep b(
      experts({"plan.tensor=2", "plan.sequence_parallel=true", "plan.expert=16", "plan.expert_tensor=1"}));
  REQUIRE(b.scenario.plan.folded_experts);
  const RankLayout layout(b.scenario.plan, b.scenario.cluster);
  const auto groups = layout.groups(GroupKind::expert, 0);
  REQUIRE(groups.size() == 1);
  CHECK(groups.front().size() == 16);
  CHECK(groups.front()[0] == 0);
  CHECK(groups.front()[1] == 1);
}
