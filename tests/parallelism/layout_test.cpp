
#include "model/parallelism/layout.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {
Plan plan_of(int data, int tensor, int pipeline, int context = 1) {
  Plan plan;
  plan.data = data;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.context = context;
  return plan;
}
}  // namespace

TEST_CASE("tensor-parallel ranks are neighbours, stages are farthest apart") {
  // rank = ((stage · data + d) · context + c) · tensor + t
  const RankLayout layout(plan_of(4, 2, 3));
  CHECK(layout.gpu(0, 0, 0, 1) == 1);
  CHECK(layout.gpu(0, 1, 0, 0) == 2);
  CHECK(layout.gpu(1, 0, 0, 0) == 8);
  CHECK(layout.gpus() == 24);
}

TEST_CASE("a stage's groups are one family, and those of the first stage shifted") {
  // Stages of 16 ranks: rank = ((stage · 8 + d) · 1 + c) · 2 + t; of neighbours, the last stage's reach back to the
  // first.
  const RankLayout layout(plan_of(8, 2, 3));
  for (const GroupKind kind : {GroupKind::tensor, GroupKind::gradients, GroupKind::neighbours}) {
    const RankGroups first = layout.groups(kind, 0);
    CHECK(first.families().size() == 1);
    CHECK(layout.groups(kind, 1).shift_from(first) == 16);
    CHECK(layout.groups(kind, 2).shift_from(first).has_value() == (kind != GroupKind::neighbours));
  }
}

TEST_CASE("the order says which dimension runs over neighbouring ranks") {
  // data fastest, then pipeline, then tensor: rank = (t · pipeline + stage) · data + d
  using enum ParallelDimension;
  Plan plan = plan_of(4, 2, 3);
  plan.order = {data, pipeline, tensor, context, expert};
  const RankLayout layout(plan);
  CHECK(layout.gpu(0, 1, 0, 0) == 1);
  CHECK(layout.gpu(1, 0, 0, 0) == 4);
  CHECK(layout.gpu(0, 0, 0, 1) == 12);
  CHECK(layout.groups(GroupKind::gradients, 1) == std::vector<std::vector<int>>{{4, 5, 6, 7}, {16, 17, 18, 19}});
  CHECK(layout.groups(GroupKind::tensor, 2).front() == std::vector<int>{8, 20});
  CHECK(layout.groups(GroupKind::neighbours, 0).front() == std::vector<int>{0, 4});
  CHECK(layout.stage_of_gpu()[17] == 1);
}

TEST_CASE("any order divides the ranks into groups of every kind") {
  Plan plan = plan_of(4, 2, 3, 2);
  plan.expert = 4;
  std::ranges::sort(plan.order);
  do {
    const RankLayout layout(plan);
    for (const auto& [kind, size] :
         {std::pair(GroupKind::tensor, 2), std::pair(GroupKind::context, 2), std::pair(GroupKind::expert, 4),
          std::pair(GroupKind::gradients, 8), std::pair(GroupKind::expert_gradients, 2)}) {
      std::set<int> seen;
      for (int stage = 0; stage < 3; ++stage) {
        for (const auto& group : layout.groups(kind, stage)) {
          CHECK(std::cmp_equal(group.size(), size));
          for (const int rank : group) CHECK(seen.insert(rank).second);
        }
      }
      CHECK(seen.size() == 48);
      CHECK(*seen.rbegin() == 47);
    }
  } while (std::ranges::next_permutation(plan.order).found);
}

TEST_CASE("experts are on neighbouring replicas, or on those farthest apart") {
  // 8 replicas and 4 experts: a set of experts has the replicas 0–3, or, where data runs first, every second one.
  using enum ParallelDimension;
  Plan plan = plan_of(8, 1, 1);
  plan.expert = 4;
  CHECK(RankLayout(plan).groups(GroupKind::expert, 0).front() == std::vector<int>{0, 1, 2, 3});
  CHECK(RankLayout(plan).groups(GroupKind::expert_gradients, 0).front() == std::vector<int>{0, 4});
  plan.order = {tensor, context, data, expert, pipeline};
  CHECK(RankLayout(plan).groups(GroupKind::expert, 0).front() == std::vector<int>{0, 2, 4, 6});
  CHECK(RankLayout(plan).groups(GroupKind::expert_gradients, 0).front() == std::vector<int>{0, 1});
}

TEST_CASE("ranks fill the nodes of a placement one after the other") {
  // Two GPUs a node; nodes 5, 1 and 2: ranks 0 and 1 are GPUs 10 and 11, ranks 2 and 3 are 2 and 3.
  Cluster cluster;
  cluster.nodes = 6;
  cluster.gpus_per_node = 2;
  Plan plan = plan_of(3, 2, 1);
  plan.placement = {5, 1, 2};
  const RankLayout layout(plan, cluster);
  CHECK(plan_gpus(plan, cluster) == 6);
  CHECK(layout.groups(GroupKind::tensor, 0) == std::vector<std::vector<int>>{{10, 11}, {2, 3}, {4, 5}});
  CHECK(layout.groups(GroupKind::gradients, 0).front() == std::vector<int>{10, 2, 4});
  CHECK(layout.stage_of_gpu() == std::vector<int>{-1, -1, 0, 0, 0, 0, -1, -1, -1, -1, 0, 0});
}

TEST_CASE("stages lie on the nodes of their ranks, machines of servers hold none") {
  // Two stages of four ranks on machines of two GPUs; the machines 4 and 5 serve.
  Cluster cluster;
  cluster.nodes = 6;
  cluster.gpus_per_node = 2;
  Plan plan = plan_of(4, 1, 2);
  CHECK(nodes_of_stages(plan, cluster) == std::vector<std::vector<int>>{{0, 1}, {2, 3}});
  plan.placement = {5, 1, 2, 0};
  CHECK(nodes_of_stages(plan, cluster) == std::vector<std::vector<int>>{{5, 1}, {2, 0}});
}

TEST_CASE("layers by speed beside machines that serve parameters alone") {
  const Scenario scenario = load_scenario("servers-sharded-servers", {"plan.stage_layers=by_speed"});
  REQUIRE(scenario.plan.stage_layers.size() == 1);
  CHECK(scenario.plan.stage_layers.front() == 18);  // of ResNet-50, all that a pipeline could divide
}

TEST_CASE("the peak of GPUs of two kinds is the mean of those that take part") {
  const Scenario scenario = load_scenario_text(
      "cluster: { groups: [ { node: dgx-a100-80gb, nodes: 1 }, { node: dgx-h100, nodes: 3 } ] }\n"
      "workload: { train: { model: gpt2, global_batch: 32, precision: bf16 } }\nplan: { data: 32 }\n",
      "groups.yaml");
  // 312 and 989.4 TFLOP/s: a quarter of the GPUs and three.
  Plan plan = scenario.plan;
  CHECK(peak_rate(plan, scenario.cluster, Precision::bf16).value() == Approx((312e12 + 3 * 989.4e12) / 4));
  plan.data = 8;
  plan.placement = {0};
  CHECK(peak_rate(plan, scenario.cluster, Precision::bf16).value() == Approx(312e12));
}
