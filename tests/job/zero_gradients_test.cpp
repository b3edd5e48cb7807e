// plan.zero: { stage: 2, gradients: … }: memory and traffic of gradients follow from one setting.
#include <fmt/ranges.h>

#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// 16 H100, eight sequences a replica and step where nothing else is said.
constexpr const char* text = R"(
cluster: { node: dgx-h100, nodes: 2 }
workload: { train: { model: llama3-8b, global_batch: 128, recompute: full } }
)";

TrainResult step(const std::string& zero, std::vector<std::string> overrides = {}) {
  overrides.push_back("plan.zero=" + zero);
  return *estimate(load_scenario_text(text, "zero.yaml", overrides)).train();
}

/// The error of reading it, if any.
struct Complaint {
  bool thrown = false;
  std::string key, got, expected;
};
Complaint complaint_about(const std::vector<std::string>& overrides) {
  try {
    load_scenario_text(text, "zero.yaml", overrides);
  } catch (const ScenarioError& error) {
    return {true, error.key(), error.got(), error.expected()};
  }
  return {};
}

Seconds scattered(const TrainResult& train) { return train.communication.at("gradient reduce-scatter").total; }

constexpr const char* kept = "{ stage: 2, gradients: kept }";
constexpr const char* every_pass = "{ stage: 2, gradients: scattered }";

}  // namespace

TEST_CASE("ZeRO-2 sends as often as it frees memory: once for one micro-batch, sixteen times for sixteen") {
  const TrainResult one = step("2", {"workload.train.global_batch=16"});
  const TrainResult sixteen = step("2", {"workload.train.global_batch=256"});
  CHECK(scattered(sixteen) / scattered(one) == Approx(16.0).epsilon(1e-6));
  // 8.03 billion numbers of four bytes, of which a rank keeps a sixteenth.
  CHECK(sixteen.memory.gradients.value() == Approx(4.0 * 8.03e9 / 16).epsilon(0.01));
  // Kept whole they are sent once, and take sixteen times the memory.
  const TrainResult whole = step(kept, {"workload.train.global_batch=256"});
  CHECK(scattered(whole) / scattered(one) == Approx(1.0).epsilon(1e-6));
  CHECK(whole.memory.gradients / sixteen.memory.gradients == Approx(16.0));
}

TEST_CASE("Over plans: kept is ZeRO-1 in time and memory, scattered never faster and never larger") {
  struct Plan {
    std::vector<std::string> keys;
    int replicas, micro_batches;
  };
  // 128 sequences over the replicas, one each micro-batch.
  const std::vector<Plan> plans = {
      {{}, 16, 8},
      {{"plan.tensor=4", "plan.sequence_parallel=true"}, 4, 32},
      {{"plan.pipeline=2"}, 8, 16},
      {{"plan.pipeline=4", "plan.interleave=2"}, 4, 32},
      {{"plan.pipeline=2", "plan.schedule=gpipe"}, 8, 16},
      {{"plan.context=2"}, 16, 16},
  };
  for (const Plan& plan : plans) {
    for (const char* overlap : {"true", "false"}) {
      for (const char* precision : {"bf16", "fp16"}) {
        std::vector<std::string> keys = plan.keys;
        keys.push_back(fmt::format("plan.sync.overlap={}", overlap));
        keys.push_back(fmt::format("workload.train.precision={}", precision));
        keys.emplace_back("plan.sync.bucket=100 MB");
        CAPTURE(fmt::format("{}", fmt::join(keys, " ")));
        const TrainResult first = step("1", keys), once = step(kept, keys), often = step(every_pass, keys);
        CHECK(once.step_time.value() == Approx(first.step_time.value()));
        CHECK(once.memory.total().value() == Approx(first.memory.total().value()));
        CHECK(scattered(often) / scattered(once) == Approx(plan.micro_batches).epsilon(1e-6));
        CHECK(often.step_time >= once.step_time);
        CHECK(often.memory.gradients / once.memory.gradients == Approx(1.0 / plan.replicas).epsilon(1e-6));
        CHECK(often.memory.total() <= once.memory.total());
      }
    }
  }
}

TEST_CASE("What nobody says is scattered, and the answer says that it was assumed") {
  const Scenario scenario = load_scenario_text(text, "zero.yaml", {"plan.zero=2"});
  Result result = estimate(scenario);
  finish(scenario, Detail::whole, result);
  const auto setting =
      std::ranges::find(result.train()->framework_settings, "plan.zero.gradients", &ResolvedSetting::key);
  REQUIRE(setting != result.train()->framework_settings.end());
  CHECK(setting->value == "scattered");
  CHECK(setting->from == ResolvedSetting::From::assumed);
  CHECK(result.train()->step_time == step(every_pass).step_time);
  CHECK(step("2", {"plan.framework=megatron"}).memory.gradients ==
        step("1", {"plan.framework=megatron"}).memory.gradients);
  CHECK(step("2", {"plan.framework=deepspeed"}).memory.gradients <
        step("1", {"plan.framework=deepspeed"}).memory.gradients);
}

TEST_CASE("DeepSpeed refuses gradients that are divided in a pipeline, and says what would be right") {
  for (const char* trainer : {"deepspeed", "megatron-deepspeed"}) {
    for (const char* zero : {"2", "3", "{ stage: 2, shard: 4 }"}) {
      const Complaint complaint = complaint_about(
          {fmt::format("plan.framework={}", trainer), fmt::format("plan.zero={}", zero), "plan.pipeline=2"});
      CAPTURE(trainer, zero);
      CHECK(complaint.key == "plan.pipeline");
      CHECK_THAT(complaint.got, Catch::Contains("incompatible with pipeline parallelism"));
      CHECK_THAT(complaint.expected, Catch::Contains("zero: 0 or 1"));
    }
    CHECK_FALSE(complaint_about({fmt::format("plan.framework={}", trainer), "plan.zero=1", "plan.pipeline=2"}).thrown);
  }
  CHECK_FALSE(complaint_about({"plan.framework=megatron", "plan.zero=2", "plan.pipeline=2"}).thrown);
}

TEST_CASE("Backward passes in two parts have nothing to scatter after every micro-batch") {
  for (const char* schedule : {"zero_bubble", "dualpipe"}) {
    const std::vector<std::string> plan = {"plan.pipeline=4", fmt::format("plan.schedule={}", schedule)};
    const auto with = [&](const std::string& zero) {
      std::vector<std::string> keys = plan;
      keys.push_back("plan.zero=" + zero);
      return complaint_about(keys);
    };
    CHECK_FALSE(with(kept).thrown);
    CHECK(with("2").key == "plan.zero");
    CHECK_THAT(with("2").expected, Catch::Contains("gradients: kept"));
  }
}

TEST_CASE("A step in fp16 is one in bf16 but for what formats do, whatever ZeRO, the plan and overlap") {
  // Both formats have the same rates and widths; fp16 adds nothing that fused kernels show. Nobody's settings hang on
  // it.
  for (const char* zero : {"0", "1", "2", "3"}) {
    for (const char* tensor : {"1", "4"}) {
      for (const char* pipeline : {"1", "2"}) {
        for (const char* beside : {"true", "false"}) {
          std::vector<std::string> keys = {
              fmt::format("plan.tensor={}", tensor), fmt::format("plan.pipeline={}", pipeline),
              fmt::format("plan.sync.overlap={}", beside), fmt::format("plan.sequence_parallel={}", beside)};
          CAPTURE(zero, tensor, pipeline, beside);
          keys.emplace_back("workload.train.precision=bf16");
          const TrainResult bf16 = step(zero, keys);
          keys.back() = "workload.train.precision=fp16";
          const TrainResult fp16 = step(zero, keys);
          CHECK(fp16.step_time / bf16.step_time == Approx(1.0).epsilon(0.005));
          CHECK(fp16.memory.total() / bf16.memory.total() == Approx(1.0).epsilon(0.005));
        }
      }
    }
  }
}
