#include "model/planning/plan_bound.hpp"

#include "model/scenario/load/load.hpp"
#include "model/training/pricing/build_step.hpp"
#include "model/training/pricing/pass_steps.hpp"
#include "model/workload/build.hpp"
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

TEST_CASE("A bound is the same bits whatever plans were bounded before it") {
  // 16 replicas, of which those of three nodes stand for all; a stage inside the pipeline is as the one before.
  Scenario scenario = load_scenario_text(
      "name: bounded\ncluster: { node: dgx-h100, nodes: 64 }\nworkload: { train: { model: gpt3-175b, micro_batch: 1, "
      "global_batch: 96 } }\nplan: { tensor: 8, pipeline: 4, data: 16 }\n",
      "bounded.yaml");
  const Topology topology(scenario.cluster);
  auto& train = std::get<TrainWorkload>(scenario.workload);
  scenario.plan.sync.accumulation = Sync::Accumulation::added;
  PassSteps used(scenario, topology);
  std::map<bool, Model> models;
  for (int round = 0; round < 2; ++round) {
    for (const int zero : {0, 1, 3}) {
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        CAPTURE(round, zero, recompute);
        scenario.plan.zero = zero;
        scenario.plan.sync.gradient_precision = zero == 1 ? Precision::bf16 : Precision::fp32;
        train.recompute = recompute;
        const Model& model =
            models.try_emplace(zero == 3, build_model(train.model, build_options(train, scenario.plan))).first->second;
        PassSteps fresh(scenario, topology);
        const PassTimes first = pass_times(fresh.step(model));
        CHECK(used.kernels(model) == fresh.kernels(model));
        const PassTimes again = pass_times(used.step(model));
        REQUIRE(again.passes.size() == 4);
        for (std::size_t at = 0; at < 4; ++at) CHECK(again.passes[at].values == first.passes[at].values);
        CHECK(again.weights == first.weights);
        CHECK(again.updates == first.updates);
        // As long as in the step itself.
        const PassTimes own = pass_times(build_step(scenario, train, model, topology));
        for (std::size_t at = 0; at < 4; ++at) {
          CHECK(again.passes[at][PassKind::backward].value() ==
                Approx(own.passes[at][PassKind::backward].value()).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("What follows a step's passes is the same without classes of ranks inside stages") {
  const auto values = [](const StepEnds& ends) {
    std::vector<Seconds> all{ends.after};
    for (const StepEnds::Stage& stage : ends.stages) {
      all.insert(all.end(), stage.gradients.begin(), stage.gradients.end());
      all.insert(all.end(), stage.last_sent.begin(), stage.last_sent.end());
      all.insert(all.end(), {stage.weights, stage.gathered, stage.first_gather, stage.first_gathers});
    }
    return all;
  };
  for (const auto& [cluster, plan] : std::vector<std::pair<std::string, std::string>>{
           {"network: { nic_bandwidth: 100 Gbit/s }", "tensor: 2, pipeline: 2, data: 4, zero: 1"},
           {"gpus_per_node: 6", "tensor: 2, pipeline: 3, data: 2"},
           {"faults: [{ node: 1, card: 0, bandwidth: 100 Gbit/s }]", "data: 16, zero: 3"}}) {
    CAPTURE(cluster, plan);
    const auto run = built(cluster, plan);
    const Step stages = build_step(run.scenario, run.train(), run.model, run.topology, Recipes::none,
                                   InsideLayers::merged, Symmetry::of_stages);
    CHECK(values(ends_of(stages)) == values(ends_of(run.step)));
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
