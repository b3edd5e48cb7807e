// A step is slowed by a cause that is known, and the diagnosis knows its time alone.
#include "reports/diagnose/diagnosis.hpp"

#include <ctime>
#include <nlohmann/json.hpp>

#include "model/base/text.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/print/table.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Gradients take about as long as the backward pass that hides them; between two nodes of eight GPUs.
constexpr const char* between_nodes = R"(
cluster: { node: dgx-a100-80gb, nodes: 2, network: { nics_per_node: 4 } }
workload:
  train:
    model: { family: gpt, layers: 24, hidden: 2048, heads: 16, vocabulary: 51200, sequence: 1024 }
    global_batch: 128
    micro_batch: 4
    recompute: none
plan: { data: 16, trainer: megatron }
)";
/// Small kernels on one GPU, launched one by one.
constexpr const char* small_batches = R"(
cluster: { node: dgx-a100-80gb, nodes: 1, gpus_per_node: 1 }
workload:
  train:
    model: { preset: bert-large, sequence: 128 }
    micro_batch: 1
    global_batch: 1
plan: { data: 1, trainer: ddp }
)";

Reload reload_of(const std::string& text) {
  return [text](const std::vector<std::string>& overrides) {
    return load_scenario_text(text, "scenario.yaml", overrides);
  };
}

Seconds step_of(const Scenario& scenario) { return predict(scenario, Fidelity::flows, Detail::numbers).time(); }

StepDiagnosis diagnosis_of(const std::string& text, Seconds measured, std::optional<double> varies = std::nullopt) {
  const Reload reload = reload_of(text);
  return diagnose_step(reload({}), reload, {measured, varies}, Fidelity::flows);
}

const StepCause* find(const StepDiagnosis& diagnosis, std::string_view name) {
  const auto found = std::ranges::find(diagnosis.causes, name, &StepCause::name);
  return found == diagnosis.causes.end() ? nullptr : &*found;
}

/// Of the causes, counted from 0.
std::size_t rank_of(const StepDiagnosis& diagnosis, std::string_view name) {
  return static_cast<std::size_t>(find(diagnosis, name) - diagnosis.causes.data());
}

constexpr std::size_t among_the_first = 8;  ///< of some twenty; the text shows six

void check_found(const char* text, Seconds measured, const char* name, std::optional<double> size = std::nullopt) {
  const StepDiagnosis diagnosis = diagnosis_of(text, measured);
  INFO(to_text(diagnosis));
  const StepCause* cause = find(diagnosis, name);
  REQUIRE(cause != nullptr);
  CHECK(rank_of(diagnosis, name) < among_the_first);
  CHECK(cause->step / measured == Approx(1.0).margin(0.01));
  CHECK(cause->explained == Approx(1.0).margin(0.05));
  REQUIRE(cause->share.has_value() == size.has_value());
  if (size) CHECK(*cause->share == Approx(*size).epsilon(0.25));
}

}  // namespace

TEST_CASE("a cause that is stated by overrides is among the first, with its size") {
  const Reload reload = reload_of(between_nodes);
  const auto slowed = [&](const char* override) { return step_of(reload({override})); };
  check_found(between_nodes, slowed("cluster.faults=[{ node: 1, gpu: 3, speed: 60 % }]"), "one slow GPU", 0.6);
  check_found(between_nodes, slowed("cluster.faults=[{ node: 1, card: 2, bandwidth: 15 % }]"), "one slow NIC", 0.15);
  check_found(between_nodes, slowed("cluster.network.nics_per_node=1"), "fewer NICs in use", 0.25);
  check_found(between_nodes, slowed("workload.train.kernels=plain"), "unfused kernels");
  check_found(between_nodes, slowed("workload.train.recompute=full"), "full recomputation");
  check_found(between_nodes, slowed("workload.train.attention=standard"), "no FlashAttention");
}

TEST_CASE("a resource that is slower than stated is among the first, with its speed") {
  const Scenario whole = reload_of(between_nodes)({});
  check_found(between_nodes, step_of(with_speed(whole, "GPU compute", 0.7)), "GPU clock lowered", 0.7);
  check_found(between_nodes, step_of(with_speed(whole, "network bandwidth", 0.2)), "slow or oversubscribed uplink",
              0.2);
  const Scenario launched = reload_of(small_batches)({});
  check_found(small_batches, step_of(with_speed(launched, "kernel dispatch on the CPU", 0.5)), "host-bound launches",
              0.5);
}

TEST_CASE("a loader that delivers 60 % of the samples in time makes the step that much longer") {
  // The step waits for its samples alone: it takes 1/0.6 of its time, but for the copy of the batch.
  std::string context = between_nodes;  // two ranks share a replica's samples
  context.replace(context.find("data: 16"), 8, "data: 8, context: 2");
  for (const std::string& text : {std::string(between_nodes), context}) {
    check_found(text.c_str(), step_of(reload_of(text)({})) / 0.6, "data loader too slow", 0.6);
  }
}

TEST_CASE("likelihoods sum to one, and no cause is needed where the step takes what is expected") {
  const Seconds expected = step_of(reload_of(between_nodes)({}));
  for (const double longer : {1.02, 1.5, 4.0}) {
    const StepDiagnosis diagnosis = diagnosis_of(between_nodes, expected * longer);
    double sum = diagnosis.none;
    for (const StepCause& cause : diagnosis.causes) sum += cause.likelihood;
    CHECK(sum == Approx(1.0));
    CHECK(std::ranges::is_sorted(diagnosis.causes, std::ranges::greater{}, &StepCause::likelihood));
    CHECK(diagnosis.within() == (longer < 1.1));
    CHECK((diagnosis.none > 0.4) == (longer < 1.1));
  }
  CHECK(diagnosis_of(between_nodes, expected * 0.5).causes.empty());
}

TEST_CASE("no single cause explains a step that none comes near") {
  const Seconds expected = step_of(reload_of(between_nodes)({}));
  const StepDiagnosis diagnosis = diagnosis_of(between_nodes, expected * 1000.0);
  INFO(to_text(diagnosis));
  CHECK_FALSE(diagnosis.explained);
  CHECK(diagnosis.none > 0.4);
  for (const StepCause& cause : diagnosis.causes) CHECK(cause.likelihood < diagnosis.none);
  CHECK_THAT(to_text(diagnosis), Catch::Contains("No single cause explains it") && !Catch::Contains("Checks"));
  for (const StepChange& change : diagnosis.changes) {
    for (const StepCause& cause : diagnosis.causes) CHECK(change.name != cause.remedy);
  }
  CHECK(diagnosis_of(between_nodes, expected * 1.5).explained);
}

TEST_CASE("steps that vary speak for the loader and others' traffic, even ones against them") {
  const Seconds measured = step_of(reload_of(between_nodes)({})) * 1.6;
  const auto loader = [&](std::optional<double> varies) {
    const StepDiagnosis diagnosis = diagnosis_of(between_nodes, measured, varies);
    return find(diagnosis, "data loader too slow")->likelihood / find(diagnosis, "one slow GPU")->likelihood;
  };
  CHECK(loader(1.3) == Approx(3.0 * loader(std::nullopt)));
  CHECK(loader(1.0) == Approx(loader(std::nullopt) / 3.0));
}

TEST_CASE("changes start from the likeliest cause, whose end brings the expected step back") {
  const Seconds expected = step_of(reload_of(between_nodes)({}));
  const StepDiagnosis diagnosis = diagnosis_of(between_nodes, expected * 1.8);
  REQUIRE(diagnosis.changes.size() == 3);
  const StepCause& likely = diagnosis.causes.front();
  const auto undone = std::ranges::find(diagnosis.changes, likely.remedy, &StepChange::name);
  REQUIRE(undone != diagnosis.changes.end());
  CHECK(undone->speedup == Approx(likely.step / expected));
  CHECK(undone->step / diagnosis.measured == Approx(expected / likely.step));
  for (const StepChange& change : diagnosis.changes) CHECK(change.step < diagnosis.measured);
}

TEST_CASE("a diagnosis takes about a second of CPU, whatever the scenario has beside its step") {
  // Failures are a thousand trainings to a prediction, checkpoints in memory a simulation of flows, and jitter forty
  // steps: each cause, of which some fifty are predicted, would repeat them for 16 s. Four, for checked builds.
  for (const char* name : {"failures-goodput-llama3-405b", "failures-checkpoints-in-memory", "failures-jitter-2048",
                           "gpt3-175b-1024-a100"}) {
    const Reload reload = [&](const std::vector<std::string>& overrides) { return load_scenario(name, overrides); };
    const Scenario scenario = reload({});
    const Seconds expected = step_of(scenario);
    const std::clock_t begun = std::clock();
    const StepDiagnosis diagnosis = diagnose_step(scenario, reload, {1.4 * expected}, Fidelity::flows);
    INFO(name);
    CHECK(diagnosis.expected / expected == Approx(1.0).epsilon(1e-9));
    CHECK(static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC < 4.0);
  }
}

TEST_CASE("a diagnosis has at most 40 lines of 80 columns, and JSON with a command for each cause") {
  StepDiagnosis diagnosis = diagnosis_of(between_nodes, step_of(reload_of(between_nodes)({})) * 1.5);
  diagnosis.source = "Megatron-LM log, median of 48 steps (2 warm-up left out), quartiles 1.2 % apart";
  const std::vector<std::string> lines = split(to_text(diagnosis), '\n');
  CHECK(lines.size() <= 41);  // the last is empty
  for (const std::string& line : lines) {
    INFO(line);
    CHECK(display_width(line) <= 80);
  }
  const auto json = nlohmann::json::parse(to_json(diagnosis));
  CHECK(json.at("causes").size() == diagnosis.causes.size());
  for (const auto& cause : json.at("causes")) {
    CHECK_FALSE(cause.at("command").get<std::string>().empty());
    CHECK(cause.at("command").get<std::string>().find("{bucket}") == std::string::npos);
  }
}
