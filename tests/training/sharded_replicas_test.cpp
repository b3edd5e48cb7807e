// ZeRO over a part of the replicas (HSDP): sharded over some, replicated beyond.
#include "model/collectives/contention.hpp"
#include "model/job/job.hpp"
#include "model/memory/memory.hpp"
#include "model/scenario/load/load.hpp"
#include "model/training/outcome/breakdown.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"
#include "tests/training/small_step.hpp"

using namespace foretrain;
using test::BuiltStep;
using test::uncontended_times;

namespace {

const char* const two_nodes = R"(
cluster: { node: dgx-a100-80gb, nodes: 2 }
workload:
  train:
    model: { family: llama, layers: 4, hidden: 4096, heads: 32, vocabulary: 32000, sequence: 2048 }
    global_batch: 16
    micro_batch: 1
    precision: bf16
    optimizer: adamw
)";

BuiltStep built(const std::string& zero, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all = {"plan.zero=" + zero};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return BuiltStep(load_scenario_text(two_nodes, "two_nodes.yaml", all));
}

enum class Groups { neighbours, far };

/// Time of a collective of 8 GPUs in each of two nodes, or of each GPU with its counterpart in the other node.
double time_of(const BuiltStep& built, CollectiveOperation operation, double bytes, Groups of) {
  CollectiveCall call;
  call.operation = operation;
  call.size = Bytes(bytes);
  std::vector<std::vector<int>> groups(of == Groups::far ? 8 : 2);
  for (int rank = 0; rank < 16; ++rank) {
    groups[static_cast<std::size_t>(of == Groups::far ? rank % 8 : rank / 8)].push_back(rank);
  }
  call.groups = groups;
  return uncontended_time(lower(call, built.topology, built.scenario.calibration), built.topology).value();
}

double time_of(const BuiltStep& built, int transfer) {
  REQUIRE(transfer >= 0);
  return built.step.transfers[static_cast<std::size_t>(transfer)].parts.front().uncontended.value();
}

double step_of(const BuiltStep& built) { return step_time(built.step, uncontended_times(built.step).end).value(); }

MemoryFootprint footprint(const BuiltStep& built) {
  return memory_footprint(built.scenario, built.train(), built.model);
}

}  // namespace

TEST_CASE("a shard's ranks are neighbours, its copies as far apart as there are ranks in a shard") {
  Plan plan;
  plan.data = 8;
  plan.zero = 3;
  plan.shard = 4;
  const RankLayout layout(plan);
  CHECK(layout.groups(GroupKind::shards, 0) == std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(layout.groups(GroupKind::copies, 0) == std::vector<std::vector<int>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  // Experts over pairs: ranks 0, 2, 4 and 6 hold the same ones, two of them in each shard.
  plan.expert = 2;
  const RankLayout experts(plan);
  CHECK(experts.groups(GroupKind::expert_shards, 0) == std::vector<std::vector<int>>{{0, 2}, {4, 6}, {1, 3}, {5, 7}});
  CHECK(experts.groups(GroupKind::expert_copies, 0) == std::vector<std::vector<int>>{{0, 4}, {2, 6}, {1, 5}, {3, 7}});
}

TEST_CASE("HSDP gathers and scatters inside a node, and reduces a shard between nodes") {
  // A block of P parameters, bf16 weights and gradients, 8 ranks a shard: all-gather and reduce-scatter of 2 P bytes
  // inside each node, all-reduce of 2 P / 8 bytes between the two GPUs that hold the same shard.
  const BuiltStep hybrid = built("{ stage: 3, shard: 8 }", {"plan.sync.gradient_precision=bf16"});
  const ShardedUnit& block = hybrid.step.rank_classes.front().chunks.front().units[1];
  const double bytes = 2.0 * hybrid.model.layers[1].layer.parameters;
  using enum CollectiveOperation;
  CHECK(time_of(hybrid, block.gather) == Approx(time_of(hybrid, all_gather, bytes, Groups::neighbours)));
  CHECK(block.gather_backward == block.gather);
  CHECK(time_of(hybrid, block.scatter) == Approx(time_of(hybrid, reduce_scatter, bytes, Groups::neighbours)));
  CHECK(time_of(hybrid, block.reduce) == Approx(time_of(hybrid, all_reduce, bytes / 8, Groups::far)));
  // Two ranks send each other half of their shard twice: at most what cards of 25 GB/s carry in that time.
  CHECK(time_of(hybrid, block.reduce) > bytes / 8 / 25e9);
  CHECK(time_of(hybrid, block.reduce) < 1.5 * bytes / 8 / 25e9);
}

TEST_CASE("a shard over all replicas is the plain level") {
  for (const int level : {1, 2, 3}) {
    const BuiltStep plain = built(std::to_string(level));
    const BuiltStep whole = built(fmt::format("{{ stage: {}, shard: 16 }}", level));
    CHECK(step_of(whole) == step_of(plain));
    CHECK(footprint(whole).total() == footprint(plain).total());
  }
}

TEST_CASE("ZeRO-1 and 2 over a shard: reduce-scatter inside, then all-reduce of the shard, weights gathered inside") {
  using enum CollectiveOperation;
  for (const std::string level : {"1", "2, gradients: kept"}) {
    const BuiltStep hybrid =
        built("{ stage: " + level + ", shard: 8 }", {"plan.sync.overlap=false", "plan.sync.bucket=whole"});
    // One bucket of all gradients in fp32; bf16 weights.
    const GradientBucket& bucket = hybrid.step.rank_classes.front().chunks.front().buckets.front();
    const double parameters = hybrid.step.parameters_per_gpu;
    REQUIRE(bucket.stages.size() == 2);
    CHECK(time_of(hybrid, bucket.stages.front().transfer) ==
          Approx(time_of(hybrid, reduce_scatter, 4.0 * parameters, Groups::neighbours)));
    CHECK(time_of(hybrid, bucket.stages.back().transfer) ==
          Approx(time_of(hybrid, all_reduce, 4.0 * parameters / 8, Groups::far)));
    const std::vector<int>& gathers = hybrid.step.rank_classes.front().chunks.front().gathers.front().transfers;
    REQUIRE(gathers.size() == 1);
    CHECK(time_of(hybrid, gathers.front()) ==
          Approx(time_of(hybrid, all_gather, 2.0 * parameters, Groups::neighbours)));
  }
}

TEST_CASE("memory is shared out by the shard alone") {
  // Two nodes hold twice what one holds: each of 8 ranks its eighth.
  for (const std::string level : {"1", "2", "3"}) {
    const MemoryFootprint hybrid = footprint(built("{ stage: " + level + ", shard: 8 }"));
    const MemoryFootprint alone = footprint(built(level, {"cluster.nodes=1", "workload.train.global_batch=8"}));
    const MemoryFootprint wide = footprint(built(level));
    CHECK(hybrid.weights == alone.weights);
    CHECK(hybrid.gradients == alone.gradients);
    CHECK(hybrid.optimizer == alone.optimizer);
    CHECK(hybrid.optimizer.value() == Approx(2.0 * wide.optimizer.value()));
  }
}

TEST_CASE("copies of a shard reduce on a stream of their own, after the scatter") {
  // Two layers of 1 s backward, 0.5 s to scatter and 2 s to reduce: the second layer's gradients are scattered at 1.5 s
  // and reduced at 3.5. The first one's are scattered at 2.5, beside that, and reduced from 3.5 to 5.5.
  Step step;
  ShardedUnit unit;
  unit.backward.time = test::compute(1.0);
  unit.scatter = test::add_transfer(step, 0.5, {0});
  unit.reduce = test::add_transfer(step, 2.0, {0});
  Step::Chunk chunk;
  chunk.units = {unit, unit};
  step.rank_classes.resize(1);
  step.rank_classes.front().chunks.push_back(chunk);
  CHECK(uncontended_times(step).synchronised.value() == Approx(5.5));
}
