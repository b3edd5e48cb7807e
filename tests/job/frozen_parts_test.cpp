// Frozen weights in a step: what is gathered, synchronised and updated; and waiting for the slowest replica.
#include "model/job/job.hpp"
#include "model/parallelism/layout.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;

namespace {

/// Eight GPUs, LLaVA-1.5, one sample a pass, with more keys of workload.train and plan.
Scenario scenario_of(const std::string& train, const std::string& plan) {
  return load_scenario_text(
      "cluster: { node: dgx-a100-80gb, nodes: 1 }\n"
      "workload: { train: { model: llava-1.5-7b, global_batch: 16, " +
          train + " } }\nplan: { data: 8, " + plan + " }\n",
      "test.yaml");
}

struct Built : test::BuiltStep {
  using BuiltStep::BuiltStep;
  [[nodiscard]] Bytes gradients() const {
    Bytes sum;
    for (const GradientBucket& bucket : step.rank_classes[0].chunks[0].buckets) sum += bucket.gradients;
    return sum;
  }
};

// Trained numbers of the parts of LLaVA-1.5 7B (tests/workload/vision_language_test.cpp).
constexpr double encoder = 303'504'384, projector = 20'979'712, language = 6'738'415'616, adapters = 39'976'960;

}  // namespace

TEST_CASE("gradients of trained parts alone are synchronised and updated") {
  const std::string plan = "sync: { gradient_precision: bf16 }";
  const Built whole(scenario_of("micro_batch: 1", plan));
  CHECK(whole.gradients().value() == Approx(2.0 * (encoder + projector + language)));
  const Built frozen(scenario_of("micro_batch: 1, freeze: [vision]", plan));
  CHECK(frozen.gradients().value() == Approx(2.0 * (projector + language)));
  const Built adapted(
      scenario_of("micro_batch: 1, freeze: [vision], lora: { rank: 16, targets: [attention, ffn] }", plan));
  CHECK(adapted.gradients().value() == Approx(2.0 * (projector + adapters)));
  const Built first_stage(scenario_of("micro_batch: 1, freeze: [vision, language]", plan));
  CHECK(first_stage.gradients().value() == Approx(2.0 * projector));
  CHECK(first_stage.step.parameters_per_gpu == Approx(projector));
  // The update passes over as many numbers: time over bandwidth, and launches.
  const double large = whole.step.rank_classes[0].optimizer.compute.value();
  CHECK(frozen.step.rank_classes[0].optimizer.compute.value() ==
        Approx(large * (projector + language) / (encoder + projector + language)).epsilon(0.01));
  CHECK(adapted.step.rank_classes[0].optimizer.compute < Seconds(0.02 * large));
}

TEST_CASE("arithmetic of a step with frozen parts") {
  const Built whole(scenario_of("micro_batch: 1", "zero: 3"));
  const Built alone(scenario_of("micro_batch: 1, freeze: [vision, language]", "zero: 3"));
  // In TFLOP a sample of 2048 tokens with one image, forward: products of the language model 27.06, its attention 1.10,
  // the encoder 0.38, the projector 0.024. Trained whole three times that. Frozen, backward: nothing of the encoder,
  // one of two gradients of the products, all of the attention (it has no weights), nearly all of the projector.
  const double products = 27.06, attention = 1.10, vision = 0.384, middle = 0.024;
  const double forward = products + attention + vision + middle;
  const double share = alone.step.model_flops_per_gpu.value() / whole.step.model_flops_per_gpu.value();
  CHECK(share == Approx((forward + products + 2 * attention + 1.8 * middle) / (3 * forward)).epsilon(0.002));
}

TEST_CASE("frozen weights are gathered like others, and nothing of them is scattered") {
  const Built built(
      scenario_of("micro_batch: 1, freeze: [vision], lora: { rank: 16, targets: [attention, ffn] }", "zero: 3"));
  const std::vector<ShardedUnit>& units = built.step.rank_classes[0].chunks[0].units;
  // Encoder: embedding and 24 blocks; projector; embedding, 32 blocks and head.
  REQUIRE(units.size() == 1 + 24 + 1 + 1 + 32 + 1);
  const auto transfer = [&](int index) { return built.step.transfers[static_cast<std::size_t>(index)]; };
  for (std::size_t i = 1; i <= 24; ++i) {
    CHECK(units[i].gather >= 0);
    CHECK(units[i].gather_backward < 0);
    CHECK(units[i].scatter < 0);
    CHECK(units[i].backward.time.total() == Seconds(0.0));
  }
  for (std::size_t i = 27; i < 27 + 32; ++i) {
    CHECK(units[i].gather >= 0);
    CHECK(units[i].gather_backward == units[i].gather);
    REQUIRE(units[i].scatter >= 0);
    // 1.25 M numbers of adapters against 204 M gathered: the scatter is the shorter one by far.
    CHECK(transfer(units[i].scatter).parts.front().uncontended <
          0.2 * transfer(units[i].gather).parts.front().uncontended);
  }
}

TEST_CASE("replicas with longer samples are waited for, once a step or in every pass") {
  const std::string data =
      "micro_batch: 1, data: { text: { distribution: histogram, values: [100, 1400], weights: [1, 1] } }";
  const Built once(scenario_of(data, "zero: { stage: 2, gradients: kept }"));
  const Built each(scenario_of(data, "zero: 3"));
  // Half of the samples are short. The slowest of eight has a long one with 1 − 2⁻⁸: a pass takes it 0.496 of the
  // difference longer than the mean. Of two passes both are long with 1 − ¾⁸ = 0.900, else one is: 0.450 on average.
  const auto excess = [](const Built& built) {
    Seconds passes;
    const Step::Chunk& chunk = built.step.rank_classes[0].chunks[0];
    passes += chunk.both_ways();
    return built.step.slowest_replica / (passes * 2.0);
  };
  CHECK(excess(each) > 0.3);
  CHECK(excess(once) == Approx(0.450 / 0.496 * excess(each)).epsilon(0.02));
  // All replicas alike: none waits.
  CHECK(Built(scenario_of("micro_batch: 1", "zero: 2")).step.slowest_replica.value() == Approx(0.0).margin(1e-9));
  // The graph waits for it, and the breakdown shows it.
  for (const Built* built : {&once, &each}) {
    Step together = built->step;
    together.slowest_replica = Seconds(0.0);
    const Seconds waited = test::uncontended_times(built->step).end - test::uncontended_times(together).end;
    CHECK(waited.value() == Approx(built->step.slowest_replica.value()));
    const TrainResult result = *estimate(built->scenario).train();
    CHECK(result.breakdown.total().value() == Approx(result.step_time.value()));
    CHECK(result.communication.at("waiting for the slowest replica").exposed.value() ==
          Approx(built->step.slowest_replica.value()));
  }
}
