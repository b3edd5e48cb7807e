// A step is slowed by a cause that is known, and the diagnosis is told its time alone.
#include "reports/diagnose/diagnosis.hpp"

#include <nlohmann/json.hpp>
#include <ranges>

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

constexpr std::size_t among_the_first = 6;  ///< as many as the text shows

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
  check_found(between_nodes, step_of(reload_of(between_nodes)({})) / 0.6, "data loader too slow", 0.6);
}

namespace {

/// What a log and the ranks' traces say of a run.
StepEvidence seen_of(const Scenario& scenario, std::optional<double> varies) {
  const Result result = predict(scenario, Fidelity::flows, Detail::numbers);
  const TrainResult& train = *result.train();
  StepEvidence seen{train.step_time, varies};
  seen.parts = train.breakdown;
  seen.communication = Seconds(0.0);
  for (const auto& [name, time] : train.communication) {
    if (name != "waiting for other ranks") *seen.communication += time.total;
  }
  if (train.buckets && is_finite(train.buckets->size)) seen.bucket = train.buckets->size;
  return seen;
}

}  // namespace

TEST_CASE("of eight planted causes seven are first by a log and traces, their size within a quarter") {
  std::string overlapped = between_nodes;
  overlapped.replace(overlapped.find("megatron"), 8, "ddp");
  std::string spread = overlapped;  // on eight nodes, where each bucket waits for 63 hops
  for (const auto& [from, to] :
       {std::pair("nodes: 2", "nodes: 8"), {"data: 16", "data: 64"}, {"batch: 128", "batch: 256"}}) {
    spread.replace(spread.find(from), std::string_view(from).size(), to);
  }
  const auto with = [](const std::string& text, const std::string& override) { return reload_of(text)({override}); };
  const auto slower = [](const std::string& text, const char* resource, double share) {
    return with_speed(reload_of(text)({}), resource, share);
  };
  constexpr double even = 1.01, uneven = 1.3;
  StepEvidence starved = seen_of(reload_of(between_nodes)({}), uneven),
               interrupted = seen_of(reload_of(between_nodes)({}), even);
  starved.parts->data_stall = starved.step * (1.0 / 0.6 - 1.0);
  starved.step = starved.step / 0.6;
  interrupted.pause = interrupted.step * 0.2;
  interrupted.step += interrupted.pause;
  const struct {
    std::string text;
    StepEvidence seen;
    const char* cause;
    std::optional<double> size;
  } planted[] = {
      {between_nodes, seen_of(slower(between_nodes, "network bandwidth", 0.4), even), "slow or oversubscribed uplink",
       0.4},
      {between_nodes, seen_of(with(between_nodes, "cluster.faults=[{ node: 1, card: 2, bandwidth: 15 % }]"), even),
       "one slow NIC", 0.15},
      {small_batches, seen_of(slower(small_batches, "kernel dispatch on the CPU", 0.5), even), "host-bound launches",
       0.5},
      {between_nodes, seen_of(slower(between_nodes, "network bandwidth", 0.4), uneven), "others' traffic", 0.4},
      {overlapped, seen_of(with(overlapped, "plan.sync.overlap=false"), even), "no overlap of gradients", {}},
      {spread, seen_of(with(spread, "plan.sync.bucket=1 MB"), even), "gradient buckets of 1 MB", {}},
      {between_nodes, starved, "data loader too slow", 0.6},
      {between_nodes, interrupted, "waiting for checkpoints", {}}};
  int first = 0;
  for (const auto& one : planted) {
    const Reload reload = reload_of(one.text);
    const StepDiagnosis diagnosis = diagnose_step(reload({}), reload, one.seen, Fidelity::flows);
    UNSCOPED_INFO(one.cause << "\n" << to_text(diagnosis));
    const StepCause* cause = find(diagnosis, one.cause);
    REQUIRE(cause != nullptr);
    first += cause == diagnosis.causes.data() ? 1 : 0;
    if (one.size) CHECK(*cause->share == Approx(*one.size).epsilon(0.25));
  }
  CHECK(first >= 7);
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
  CHECK_THAT(to_text(diagnosis), Catch::Contains("No single cause explains it") && !Catch::Contains("Tell them apart"));
  for (const StepChange& change : diagnosis.changes) CHECK_FALSE(change.name.starts_with("fix: "));
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
  const auto undone = std::ranges::find(diagnosis.changes, "fix: " + likely.name, &StepChange::name);
  REQUIRE(undone != diagnosis.changes.end());
  CHECK(undone->speedup == Approx(likely.step / expected));
  CHECK(undone->step / diagnosis.measured == Approx(expected / likely.step));
  for (const StepChange& change : diagnosis.changes) CHECK(change.step < diagnosis.measured);
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
