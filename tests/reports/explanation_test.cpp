// Bottlenecks of a step, branch by branch of the decision tree, and sensitivities.
#include "reports/explain/explanation.hpp"

#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Scenario gpt(const std::vector<std::string>& overrides = {}) {
  return load_scenario_text(R"(
cluster: { node: dgx-a100-80gb, nodes: 2 }
workload:
  train:
    model: { family: gpt, layers: 8, hidden: 2048, heads: 16, vocabulary: 51200, sequence: 1024 }
    global_batch: 64
    micro_batch: 4
    precision: bf16
plan: { data: 16 }
)",
                            "gpt.yaml", overrides);
}

/// A step of 1 s: compute, exposed communication, bubble, data, host and optimizer; products at half their peak while
/// kernels run.
Explanation of_parts(const Breakdown& parts, std::vector<WhatIf> scaled = {}, double rate = 156e12) {
  Result result;
  TrainResult& train = result.work.emplace<TrainResult>();
  train.step_time = Seconds(1.0);
  train.samples_per_second = 64.0;
  train.breakdown = parts;
  train.communication["gradient all-reduce"] = {Seconds(0.6), parts.exposed_communication};
  train.model_flops_per_second_per_gpu = FlopsPerSecond(rate) * parts.compute.value();
  return explain(gpt(), std::move(result), std::move(scaled), {});
}

/// A resource of which a time of 1 s becomes `faster` and `slower`.
void add(std::vector<WhatIf>& answers, const char* resource, double faster, double slower) {
  for (const double seconds : {faster, slower}) {
    Result result;
    result.work.emplace<TrainResult>().step_time = Seconds(seconds);
    answers.push_back({.name = resource, .result = result});
  }
}

TimelineEntry ran(const char* resource, const char* name, double start, double duration, const char* category,
                  std::vector<std::size_t> after = {}) {
  TimelineEntry entry{resource, name, Seconds(start), Seconds(duration), -1, category};
  entry.after = std::move(after);
  return entry;
}

Breakdown parts(double compute, double communication, double bubble, double data, double host) {
  return {Seconds(compute), Seconds(communication), Seconds(bubble), Seconds(data), Seconds(host), Seconds(0.0)};
}

}  // namespace

TEST_CASE("what bounds a step is the first part above its limit, else the longer kind of work") {
  const auto of = [](double compute, double communication, double bubble, double data, double host, double optimizer) {
    Breakdown step = parts(compute, communication, bubble, data, host);
    step.optimizer = Seconds(optimizer);
    return std::string(bottleneck_of(step));
  };
  CHECK(of(0.64, 0.36, 0.0, 0.0, 0.0, 0.0) == "exposed communication");
  CHECK(of(0.75, 0.25, 0.0, 0.0, 0.0, 0.0) == "compute");
  CHECK(of(0.35, 0.32, 0.33, 0.0, 0.0, 0.0) == "pipeline bubble");
  CHECK(of(0.5, 0.0, 0.37, 0.0, 0.13, 0.0) == "host overhead");
  CHECK(of(0.5, 0.2, 0.0, 0.11, 0.19, 0.0) == "data loading");
  CHECK(of(0.5, 0.0, 0.0, 0.125, 0.375, 0.0) == "data loading");
  CHECK(of(0.3, 0.25, 0.0, 0.0, 0.05, 0.4) == "optimizer");
  // A quarter of 4 s is less than the limit, of a share: what counts is not the second.
  CHECK(std::string(bottleneck_of({Seconds(3.0), Seconds(1.0), {}, {}, {}, {}})) == "compute");
}

TEST_CASE("every branch of the decision tree has its bottleneck") {
  using Catch::Contains;
  CHECK(of_parts(parts(0.8, 0.05, 0.0, 0.15, 0.0)).bottleneck == "data loading");
  CHECK(of_parts(parts(0.8, 0.05, 0.0, 0.0, 0.15)).bottleneck == "kernel dispatch on the CPU");
  CHECK(of_parts(parts(0.6, 0.05, 0.35, 0.0, 0.0)).bottleneck == "the pipeline bubble");
  std::vector<WhatIf> network, nvlink, memory;
  add(network, "network bandwidth", 0.96, 1.04);
  add(network, "NVLink", 0.99, 1.01);
  add(nvlink, "network bandwidth", 0.99, 1.01);
  add(nvlink, "NVLink", 0.96, 1.04);
  CHECK_THAT(of_parts(parts(0.6, 0.4, 0.0, 0.0, 0.0), network).bottleneck,
             Contains("over the network: gradient all-reduce (400 ms)"));
  CHECK_THAT(of_parts(parts(0.6, 0.4, 0.0, 0.0, 0.0), nvlink).bottleneck, Contains("over NVLink"));
  add(memory, "GPU memory bandwidth", 0.94, 1.06);
  add(memory, "GPU compute", 0.97, 1.03);
  CHECK(of_parts(parts(0.95, 0.05, 0.0, 0.0, 0.0), memory).bottleneck == "GPU memory bandwidth");
  // 312 TFLOP/s is A100's peak in bf16: 80 of them are a quarter.
  CHECK_THAT(of_parts(parts(0.95, 0.05, 0.0, 0.0, 0.0), {}, 80e12).bottleneck,
             Contains("low tensor-core utilisation") && Contains("25.6 %"));
  const Explanation busy = of_parts(parts(0.95, 0.05, 0.0, 0.0, 0.0));
  CHECK(busy.bottleneck == "GPU compute");
  CHECK(busy.path.size() == 6);
  CHECK_FALSE(busy.path.back().yes());
  // The first yes ends the questions.
  CHECK(of_parts(parts(0.3, 0.4, 0.0, 0.3, 0.0)).path.size() == 1);
}

TEST_CASE("sensitivity is the difference of two predictions") {
  const Scenario scenario = gpt();
  const auto time = [](const Scenario& s) { return predict(s, Fidelity::estimate).time(); };
  std::vector<WhatIf> answers;
  for (WhatIf& one : scaled_resources(scenario)) {
    one.result = predict(*one.scenario, Fidelity::estimate);
    answers.push_back(std::move(one));
  }
  const Explanation e = explain(scenario, predict(scenario, Fidelity::estimate), std::move(answers), {});
  Scenario faster = scenario, slower = scenario;
  faster.cluster.network.nic_bandwidth *= 1.1;
  slower.cluster.network.nic_bandwidth /= 1.1;
  const auto network = std::ranges::find(e.sensitivities, "network bandwidth", &Sensitivity::resource);
  REQUIRE(network != e.sensitivities.end());
  CHECK(network->faster.value() == Approx(time(faster).value()).epsilon(1e-12));
  CHECK(network->slower.value() == Approx(time(slower).value()).epsilon(1e-12));
  CHECK(network->share == Approx(std::log(time(slower) / time(faster)) / (2.0 * std::log(1.1))));
  CHECK(network->share > 0.0);
  // Everything twice as fast would take half: the shares add up to nearly all of the step.
  double sum = 0.0;
  for (const Sensitivity& s : e.sensitivities) sum += s.share;
  CHECK(sum == Approx(1.0).epsilon(0.1));
  CHECK(std::ranges::is_sorted(e.sensitivities, std::ranges::greater{}, &Sensitivity::share));
}

TEST_CASE("a remedy is the scenario with its key set, or says why it cannot be") {
  const std::vector<std::string> now = {"plan.sync.overlap=false", "workload.train.micro_batch=4"};
  const Scenario scenario = gpt(now);
  const std::vector<WhatIf> list = remedies(scenario, [&](const std::vector<std::string>& further) {
    std::vector<std::string> all = now;
    all.insert(all.end(), further.begin(), further.end());
    return gpt(all);
  });
  const auto named = [&](const char* name) -> const WhatIf& {
    const auto found = std::ranges::find(list, name, &WhatIf::name);
    REQUIRE(found != list.end());
    return *found;
  };
  CHECK(named("overlap of gradient reduction with the backward pass").scenario->plan.sync.overlap);
  // 200 Gbit/s are 25 GB/s, and a slot of PCIe 4 carries 26 GB/s.
  CHECK(named("2x network bandwidth (then limited by PCIe, 26.0 GB/s)").scenario->cluster.network.nic_bandwidth ==
        scenario.cluster.network.nic_bandwidth * 2.0);
  CHECK_FALSE(named("2x micro-batch size").scenario);
  CHECK_THAT(named("2x micro-batch size").why_not, Catch::Contains("not divisible"));
  // Present settings are no remedy, and A100 has no units for fp8.
  CHECK(std::ranges::none_of(list, [](const WhatIf& one) { return one.name == "training in fp8"; }));
  CHECK(std::ranges::none_of(list, [](const WhatIf& one) { return one.name == "all-reduce chosen by NCCL"; }));
}

TEST_CASE("the critical path goes back from the last task by what each waited for") {
  // On the GPU: forward 0 to 2 s, backward 2 to 5 s, optimizer 8 to 9 s. Beside it an all-reduce from 3 to 8 s, which
  // waited for the forward pass alone (it began a second late) and which the optimizer waits for.
  const std::vector<TimelineEntry> timeline = {
      ran("gpu", "forward", 0.0, 2.0, "compute"), ran("gpu", "backward", 2.0, 3.0, "compute"),
      ran("gpu", "update", 8.0, 1.0, "optimizer", {3}), ran("network", "all-reduce", 3.0, 5.0, "communication", {0})};
  const std::vector<PathPart> path = critical_path(timeline);
  REQUIRE(path.size() == 4);
  CHECK(path[0].name == "all-reduce");
  CHECK(path[0].time == Seconds(5.0));
  CHECK(path[1].name == "compute");
  CHECK(path[1].time == Seconds(2.0));
  double sum = 0.0;
  for (const PathPart& part : path) sum += part.time.value();
  CHECK(sum == Approx(9.0));  // the waiting second included
  CHECK(critical_path({}).empty());
}

TEST_CASE("the critical path does not lead to another resource that nothing waited for") {
  const std::vector<TimelineEntry> timeline = {ran("a", "early", 0.0, 1.0, "communication"),
                                               ran("b", "late", 3.0, 2.0, "communication")};
  const std::vector<PathPart> path = critical_path(timeline);
  REQUIRE(path.size() == 2);
  CHECK(path[0].name == "waiting");
  CHECK(path[0].time == Seconds(3.0));
  CHECK(path[1].name == "late");
}

TEST_CASE("step-time percentiles appear for scenarios without jitter, too") {
  const Scenario scenario = gpt();
  const std::optional<Scenario> jittery = with_usual_jitter(scenario);
  REQUIRE(jittery);
  CHECK_FALSE(with_usual_jitter(*jittery));
  Explanation e = explain(scenario, predict(scenario, Fidelity::estimate), {}, {});
  CHECK_FALSE(e.spread);
  set_spread(e, predict(*jittery, Fidelity::estimate));
  REQUIRE(e.spread);
  CHECK(e.spread->p50 <= e.spread->p90);
  CHECK(e.spread->p90 <= e.spread->p99);
  CHECK_THAT(to_text(e), Catch::Contains("Step-time percentiles") && Catch::Contains("P99"));
}

TEST_CASE("What-ifs are estimates where simulating each would take minutes, and the text says so") {
  CHECK(what_if_fidelity(load_scenario("deepseek-v3-2048-h100"), Fidelity::flows) == Fidelity::estimate);
  const Scenario scenario = gpt();
  CHECK(what_if_fidelity(scenario, Fidelity::flows) == Fidelity::flows);
  CHECK(what_if_fidelity(scenario, Fidelity::estimate) == Fidelity::estimate);

  Result result, estimate, with_jitter;
  result.work.emplace<TrainResult>().step_time = Seconds(3.0);
  estimate.work.emplace<TrainResult>().step_time = Seconds(2.0);
  with_jitter.work.emplace<TrainResult>().spread = TrainResult::Spread{Seconds(2.2), Seconds(2.4), Seconds(2.6)};
  estimate.fidelity = Fidelity::estimate;
  Explanation e = explain(scenario, result, {}, {}, estimate);
  set_spread(e, with_jitter);
  REQUIRE(e.spread);  // times 3 / 2.2: the step's time is the median
  CHECK(e.spread->p50.value() == Approx(3.0));
  CHECK(e.spread->p90.value() == Approx(3.0 * 2.4 / 2.2));
  CHECK(e.spread->p99.value() == Approx(3.0 * 2.6 / 2.2));
  const std::string text = to_text(e);
  CHECK_THAT(text, Catch::Contains("Everything below uses fidelity estimate") && Catch::Contains("2.00 s"));
  CHECK_THAT(text, Catch::Contains("--what-ifs flows"));
}
