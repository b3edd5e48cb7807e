// R15: training a vision–language model on four A100 of 40 GB, stage by stage from 2.5 to more than 10 samples a
// second.
#include "model/scenario/load/cases.hpp"
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

const std::vector<std::string> stages = {"baseline",       "bf16", "flash",        "padding", "packing",
                                         "frozen-encoder", "lora", "no-recompute", "loader"};

const TrainResult& stage(const std::string& name) {
  static std::map<std::string, TrainResult> known;
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  return known.emplace(name, *predict(load_scenario("r15-" + name), Fidelity::estimate).train()).first->second;
}

}  // namespace

TEST_CASE("R15: every stage is at least as fast as the one before, and fits into 40 GB") {
  double before = 0.0;
  for (const std::string& name : stages) {
    INFO(name);
    const TrainResult& result = stage(name);
    CHECK(result.samples_per_second >= before);
    before = result.samples_per_second;
    CHECK(result.memory.capacity.value() == 40.0 * 1024 * 1024 * 1024);
    CHECK(result.memory.fits());
  }
}

TEST_CASE("R15: from about 2.5 to 10 samples a second, and beyond") {
  // The exercise's 2.5 samples/s is not fitted. By hand: 2048 tokens · 2 · 6.6 B and 0.8 TFLOP of attention scores are
  // 28 TFLOP forward, four times with backward pass and recomputation: 112 TFLOP a sample, so that four cards at half
  // to two thirds of TF32's 156 TFLOP/s train 2.8 to 3.7 samples/s before attention's passes over its scores.
  CHECK(stage("baseline").samples_per_second == Approx(2.5).epsilon(0.15));
  CHECK(stage("padding").samples_per_second < 10.0);
  CHECK(stage("packing").samples_per_second > 10.0);
  CHECK(stage("loader").samples_per_second > 4.0 * stage("baseline").samples_per_second);
}

TEST_CASE("R15: what each stage changes") {
  // The tensor cores' rate doubles from TF32 to bf16, what passes through memory halves.
  const double bf16 = stage("bf16").samples_per_second / stage("baseline").samples_per_second;
  CHECK(bf16 > 1.6);
  CHECK(bf16 < 2.2);
  // 1 · 0.1 … 3 · 0.1 images of 576 tokens, 1.4 on average, and 320 words; what goes beyond 2048 is cut off.
  const TrainResult::TokenUse padded = *stage("padding").token_use;
  CHECK(padded.images == Approx(1.4));
  CHECK(padded.visual == Approx(1.4 * 576));
  CHECK(padded.tokens < 1.4 * 576 + 320);
  CHECK(padded.tokens > 0.97 * (1.4 * 576 + 320));
  CHECK(stage("flash").token_use->computed == 2048.0);
  // Padded to the longest of four, every fourth pass has 2 or 3 images more than its shortest. Under ZeRO-3 each
  // micro-batch takes as long as its slowest GPU: more than a tenth of the step is waiting. Packed, next to nothing.
  CHECK(padded.useful_share() < 0.75);
  CHECK(padded.slowest_replica > 0.1 * stage("padding").step_time);
  const TrainResult::TokenUse packed = *stage("packing").token_use;
  CHECK(packed.useful_share() > 0.8);
  CHECK(packed.slowest_replica < 0.02 * stage("packing").step_time);
  CHECK(stage("bucketing").token_use->useful_share() > packed.useful_share());
  // A frozen encoder of 304 M weights: 8 bytes of moments and 4 of fp32 gradients each, over four GPUs.
  const double states = stage("packing").memory.optimizer.value() + stage("packing").memory.gradients.value();
  const double without =
      stage("frozen-encoder").memory.optimizer.value() + stage("frozen-encoder").memory.gradients.value();
  CHECK(states - without == Approx(303.5e6 * 12 / 4).epsilon(0.05));
  // 40 M numbers of adapters and 21 M of the projector are all that is synchronised and updated.
  CHECK(stage("lora").memory.optimizer.value() == Approx((39'976'960 + 20'979'712) * 8.0 / 4).epsilon(0.01));
  CHECK(stage("lora").breakdown.optimizer < 0.02 * stage("packing").breakdown.optimizer);
  CHECK(stage("lora").memory.total().value() < 0.4 * stage("packing").memory.total().value());
  // Without recomputing a third of the arithmetic is gone, and one worker that needs 250 ms for a sample delivers a
  // step's 16 samples a GPU in 4 s.
  CHECK(stage("no-recompute").step_time.value() == Approx(4.0));
  CHECK(stage("no-recompute").breakdown.data_stall > Seconds(0.1));
  CHECK(stage("loader").breakdown.data_stall == Seconds(0.0));
}

TEST_CASE("R15: the table of stages says what the scenarios say") {
  const std::vector<Case> rows = read_cases(FORETRAIN_SOURCE_DIR "/scenarios/sweeps/vision-language-stages.csv");
  REQUIRE(rows.size() == stages.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(rows[i].name);
    CHECK(load_scenario("r15-" + stages[i]).name == rows[i].name);
    CHECK(predict(scenario_of(rows[i]), Fidelity::estimate).time().value() ==
          Approx(stage(stages[i]).step_time.value()).epsilon(1e-12));
  }
}
