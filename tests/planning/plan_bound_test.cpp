#include "model/planning/plan_bound.hpp"

#include "model/scenario/load/load.hpp"
#include "model/training/pricing/pass_steps.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;

namespace {

/// A training of BERT on two DGX H100.
test::BuiltStep built(const std::string& cluster, const std::string& plan) {
  return test::BuiltStep(load_scenario_text(
      "name: bounded\ncluster: { node: dgx-h100, nodes: 2, " + cluster +
          " }\nworkload: { train: { model: bert-large, micro_batch: 1, global_batch: 32 } }\nplan: { " + plan + " }\n",
      "bounded.yaml"));
}

}  // namespace

TEST_CASE("Stages that begin in the middle of a machine pay for their tensor ranks' collectives in a bound") {
  const auto run = built("gpus_per_node: 6", "tensor: 2, pipeline: 3, data: 2");  // stages of 4 GPUs on machines of 6
  const PassTimes bound = pass_times(PassSteps(run.scenario, run.topology).step(run.model));
  const PassTimes own = pass_times(run.step);
  for (std::size_t at = 0; at < own.passes.size(); ++at) {
    for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
      CHECK_THAT(bound.passes[at][kind].value(), Catch::Matchers::WithinRel(own.passes[at][kind].value(), 1e-9));
    }
  }
}

TEST_CASE("Gradients that leave after every micro-batch follow each other in a bound") {
  const Step step = built("network: { nic_bandwidth: 4 Gbit/s }", "data: 16, zero: 2, sync: { bucket: 100 MB }").step;
  Seconds gradients;
  for (const GradientBucket& bucket : step.rank_classes.front().chunks.front().buckets) {
    for (const GradientBucket::Stage& stage : bucket.stages) {
      gradients += step.transfers[static_cast<std::size_t>(stage.transfer)].parts.front().uncontended;
    }
  }
  CHECK(step.micro_batches == 2);
  CHECK(step_bound(step) >= gradients * 2.0);
}

TEST_CASE("A pipeline's bound has its messages: each way one for every stage before the last") {
  PassTimes times;
  PerPass<Seconds> pass;
  pass[PassKind::forward] = Seconds(1.0);
  pass[PassKind::backward] = Seconds(2.0);
  times.passes.assign(4, pass);
  times.hop = Seconds(0.5);
  const auto bound_of = [&](PipelineSchedule schedule, int stages, int interleave) {
    return pipeline_bound({schedule, stages, interleave, 8}, times).value();
  };
  using enum PipelineSchedule;
  // The last of four stages begins after three passes and hops, works for 8 · 3 s, and its last gradients need three
  // backward passes and hops to the first.
  CHECK(bound_of(one_forward_one_backward, 4, 1) == Approx(3 * 1.5 + 24.0 + 3 * 2.5));
  // Two chunks on each of two stages: one pass and one hop, 8 · 2 · 3 s, and one backward pass and hop.
  CHECK(bound_of(interleaved, 2, 2) == Approx(1.5 + 48.0 + 2.5));
  // A V: as above, but what its stages put off may wait for the end.
  CHECK(bound_of(zero_bubble, 2, 2) == Approx(1.5 + 48.0));
  // Collectives of weights, 4 s in each micro-batch, take longer than the passes and the way back.
  times.weights.assign(4, Seconds(4.0));
  CHECK(bound_of(one_forward_one_backward, 4, 1) == Approx(3 * 1.5 + 32.0));
  times.weights.assign(4, Seconds(3.0));
  CHECK(bound_of(one_forward_one_backward, 4, 1) == Approx(3 * 1.5 + 24.0 + 3 * 2.5));
  // Updates follow: the longest of them, that of the second stage.
  times.updates = {Seconds(1.0), Seconds(7.0), Seconds(1.0), Seconds(2.0)};
  CHECK(bound_of(one_forward_one_backward, 4, 1) == Approx(36.0 + 7.0));
}
