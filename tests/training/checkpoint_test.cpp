// The state of a training on its way to storage.
#include "model/training/outcome/checkpoint.hpp"

#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"
#include "tests/training/small_step.hpp"

using namespace foretrain;
using test::BuiltStep;

namespace {

const char* const eight = R"(
cluster: { node: dgx-a100-80gb, nodes: 1 }
workload:
  train:
    model: { family: llama, layers: 8, hidden: 4096, heads: 32, vocabulary: 32000, sequence: 2048 }
    global_batch: 8
    micro_batch: 1
    precision: bf16
    optimizer: adamw
    checkpoint:
      every: 100
      storage: { kind: flash, read_bandwidth: 8 GB/s, write_bandwidth: 5 GB/s, random_read_iops: 1000000,
                 random_write_iops: 200000, read_latency: 80 us, write_latency: 20 us, source: { kind: assumption, text: a test } }
)";

struct Costed {
  explicit Costed(const std::vector<std::string>& overrides)
      : built(load_scenario_text(eight, "eight.yaml", overrides)),
        cost(checkpoint_cost(built.scenario, built.train(), built.step, built.topology)) {}
  BuiltStep built;
  CheckpointCost cost;
};

double copied_by(const Costed& costed, std::size_t rank) {
  return costed.cost.copy.phases.front().flows.at(rank).bytes.value();
}

}  // namespace

TEST_CASE("a checkpoint has every number of the state once, however the training is laid out") {
  // bf16 weights, their fp32 copy and Adam's two fp32 states: 14 bytes a parameter; each of eight replicas copies an
  // eighth.
  const Costed data({});
  const double parameters = data.built.step.parameters_per_gpu;
  CHECK(data.cost.state.value() == Approx(14.0 * parameters));
  REQUIRE(data.cost.copy.phases.front().flows.size() == 8);
  CHECK(copied_by(data, 0) == Approx(14.0 * parameters / 8));
  CHECK(Costed({"plan.zero={ stage: 1, shard: 4 }"}).cost.state.value() == Approx(14.0 * parameters));
  CHECK(Costed({"plan.pipeline=4", "plan.schedule=dualpipe", "workload.train.global_batch=16"}).cost.state.value() ==
        Approx(14.0 * parameters));
  // Tensor ranks each have the norms' scales.
  CHECK(Costed({"plan.tensor=4"}).cost.state.value() == Approx(14.0 * parameters).epsilon(1e-3));
  CHECK(Costed({"workload.train.master_weights=false"}).cost.state.value() == Approx(10.0 * parameters));
  // FSDP's only weights are the fp32 ones.
  CHECK(Costed({"plan.zero=3"}).cost.state.value() == Approx(12.0 * parameters));
  // States that are on the host need no copy, but are written.
  const Costed offloaded({"plan.offload=optimizer"});
  CHECK(copied_by(offloaded, 0) == Approx(2.0 * parameters / 8));
  CHECK(offloaded.cost.state == data.cost.state);
  // The same 14 bytes of a server's part of the parameters.
  CHECK(checkpoint_state(data.built.train(), data.built.scenario.plan, 1000.0).value() == 14'000.0);
}

TEST_CASE("a machine writes what its GPUs have, at the speed of its disk") {
  // 5 GB/s in blocks of 16 MiB, each handled in 5 us.
  const Costed one({});
  CHECK(one.cost.per_machine == one.cost.state);
  CHECK(one.cost.write.value() == Approx(one.cost.state.value() / 5e9).epsilon(0.01));
  // Two machines with disks of their own write half each.
  const Costed two({"cluster.nodes=2", "workload.train.global_batch=16"});
  CHECK(two.cost.write.value() == Approx(one.cost.write.value() / 2).epsilon(1e-6));
  // A server that both write to carries all of it.
  const std::string server = "workload.train.checkpoint.storage.kind=network";
  const std::string way = "workload.train.checkpoint.storage.round_trip=50 us";
  const Costed shared({"cluster.nodes=2", "workload.train.global_batch=16", server, way});
  CHECK(shared.cost.write.value() == Approx(one.cost.write.value()).epsilon(0.01));
}

TEST_CASE("training waits for a synchronous checkpoint, and for the last one before the next") {
  // Steps of 1 s, of which 0.9 s are the graph's; a copy of 0.3 s, beside which the graph takes 0.95 s; 4 s to write.
  CheckpointCost cost;
  cost.write = Seconds(4.0);
  Checkpoint checkpoint;
  checkpoint.every = 10;
  const auto step = [&](double with_copy) {
    return checkpointed_step(checkpoint, cost, Seconds(1.0), {Seconds(0.9), Seconds(with_copy)});
  };
  CHECK(step(0.95).step.value() == Approx(1.05));
  CHECK(step(0.95).mean.value() == Approx(1.005));
  cost.write = Seconds(20.0);  // two seconds for each of ten steps
  CHECK(step(0.95).mean.value() == Approx(2.0));
  cost.write = Seconds(4.0);
  // Beside the write steps take 1.25 s: its four seconds hold 3.2 steps, and cost 0.8 s of ten. A write that never ends
  // makes all of them 1.25 s.
  const auto beside = [&](double write) {
    cost.write = Seconds(write);
    return checkpointed_step(checkpoint, cost, Seconds(1.0), {Seconds(0.9), Seconds(0.9), 1.25}).mean.value();
  };
  CHECK(beside(4.0) == Approx(1.08));
  CHECK(beside(12.5) == Approx(1.25));
  cost.write = Seconds(4.0);
  checkpoint.mode = Checkpoint::Mode::synchronous;
  CHECK(step(0.9 + 0.3).step.value() == Approx(1.0 + 0.3 + 4.0));
  CHECK(step(0.9 + 0.3).mean.value() == Approx(1.43));
}

TEST_CASE("the optimizer waits until the weights that it will change are copied") {
  // Passes of 3 s, then 1 s of updates; a copy of 2 s is done before, one of 10 s holds the update up.
  Step step = test::data_parallel_step(1, 1.0, 2.0, 0.0, true);
  step.rank_classes.front().optimizer = test::compute(1.0);
  const auto with_copy = [&](double seconds) {
    Step::Transfer::Part copy;
    copy.lowered.phases.push_back({Seconds(seconds), {}, 1});
    copy.uncontended = Seconds(seconds);
    step.checkpoint = copy;
    return run(step_graph(step).graph).makespan.value();
  };
  CHECK(with_copy(2.0) == Approx(4.0));
  CHECK(with_copy(10.0) == Approx(11.0));
}
