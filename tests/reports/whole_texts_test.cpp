// Pages of text, each checked as a whole, from values made by hand.
#include <nlohmann/json.hpp>

#include "reports/explain/comparison.hpp"
#include "reports/explain/explanation.hpp"
#include "reports/result/text.hpp"
#include "reports/studies/memory_report.hpp"
#include "tests/reports/sample_results.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {

namespace {

WhatIf remedy(const char* name, double speedup, std::vector<std::string> overrides = {}, double gigabytes = 40.0) {
  return {.name = name,
          .overrides = std::move(overrides),
          .result = short_step(0.1 / speedup, gigabytes),
          .speedup = speedup};
}

}  // namespace

TEST_CASE("The page of an explanation: what bounds it, what resources and remedies are worth", "[golden]") {
  Explanation e;
  e.result = short_step(0.1);
  e.path = {{"data stall", 0.1, 0.1}, {"communication", 0.25, 0.2}};
  e.bottleneck = "communication";
  e.advice = "overlap more";
  e.critical_path = {{"compute", Seconds(0.075)}, {"gradient all-reduce", Seconds(0.025)}};
  e.spread = TrainResult::Spread{.p50 = Seconds(0.1), .p90 = Seconds(0.105), .p99 = Seconds(0.11)};
  e.sensitivities = {{"arithmetic", Seconds(0.094), Seconds(0.107), 0.65},
                     {"disk", Seconds(0.1), Seconds(0.10004), 0.0},
                     {"host", Seconds(0.1), Seconds(0.1), 0.0},
                     {"memory", Seconds(0.1), Seconds(0.10006), 0.01}};
  e.remedies = {remedy("bf16", 1.5, {"plan.precision=bf16", "plan.sync={ a: 1 }"}),
                remedy("more memory", 1.006, {"plan.x=f(1)"}, 90.0),
                remedy("same", 1.004),
                remedy("as well", 0.996),
                remedy("worse", 0.9),
                {.name = "none", .why_not = "there is no such thing"}};
  check_whole("explanation-bounds-resources-remedies-worth.txt", to_text(e));
  e.remedies = {remedy("same", 1.0)};
  e.estimate = short_step(0.09);
  e.estimate->fidelity = Fidelity::estimate;
  e.path.clear();
  e.critical_path.clear();
  e.spread.reset();
  e.sensitivities.resize(1);
  check_whole("explanation-bounds-resources-remedies-worth-2.txt", to_text(e));
}

TEST_CASE("Servers are reported beside a ring, with what sets their pace", "[golden]") {
  Explanation e;
  e.result = short_step(0.1);
  e.remedies = {remedy("servers", 0.5), remedy("ring all-reduce", 1.0)};
  e.remedies[0].result->train()->parameter_server = eight_workers();
  const auto reported = [&] {
    const std::string text = to_text(e);
    return text.substr(text.find("\nParameter servers"));
  };
  check_whole("servers-told-beside-ring-sets.txt", reported());
  ParameterServerResult& servers = *e.remedies[0].result->train()->parameter_server;
  servers.link_bound = Seconds(0.3);
  CHECK_THAT(reported(), Catch::Contains("bottleneck is the servers' links"));
  servers.server_bound = Seconds(0.4);
  CHECK_THAT(reported(), Catch::Contains("servers' CPU."));
  // The scenario has servers itself, and the ring is a remedy.
  e.result.train()->parameter_server = eight_workers();
  e.remedies.erase(e.remedies.begin());
  check_whole("servers-told-beside-ring-sets-2.txt", reported());
}

TEST_CASE("The page of a comparison has what differs above what came out", "[golden]") {
  Result one = short_step(0.1), two = short_step(0.125, 90.0);
  two.scenario = "another";
  one.settings = {{"Plan", "data", "8", "", true},
                  {"Plan", "tensor", "1", "", true},
                  {"Machines", "", "a", "", true},
                  {"Machines", "", "b", "", true}};
  two.settings = {{"Plan", "data", "4", "", true},
                  {"Plan", "tensor", "1", "", true},
                  {"Plan", "zero", "1", "", true},
                  {"Machines", "", "a", "", true}};
  two.train()->tokens_per_second = 1000.0;
  two.train()->tokens_per_second_per_gpu = 125.0;
  check_whole("comparison-differs-above-came-out.txt", comparison_text({one, two}));
}

TEST_CASE("The page of a GPU's memory has a row for each part that is used", "[golden]") {
  MemoryReport report;
  report.scenario = "by hand";
  report.gpu = "small";
  MemoryTimeline::Moment forward{MemoryTimeline::Phase::forward, 0, 0, "block", {}};
  forward.parts[MemoryPart::weights] = Bytes(4e9);
  MemoryTimeline::Moment fuller{MemoryTimeline::Phase::forward, 1, 2, "head", forward.parts};
  fuller.parts[MemoryPart::activations] = Bytes(5e9);
  MemoryTimeline::Moment optimizer{MemoryTimeline::Phase::optimizer, -1, -1, "", forward.parts};
  report.timeline.moments = {forward, fuller, optimizer};
  report.timeline.peak = 1;
  report.timeline.stage = 2;
  report.timeline.capacity = report.footprint.capacity = Bytes(10e9);
  report.footprint.weights = Bytes(9e9);
  report.footprint.host = Bytes(60e9);
  report.footprint.host_capacity = Bytes(50e9);
  report.largest_micro_batch = 1;
  check_whole("gpu-s-memory-row-part.txt", to_text(report));
  report.footprint.capacity = Bytes(6e9);
  report.largest_micro_batch = 0;
  report.remedies = {"fits with recompute: full: 5.0 of 6.0 GB"};
  CHECK_THAT(to_text(report), Catch::Contains("9.00 of 6.00 GB (DOES NOT FIT)") &&
                                  Catch::Contains("No micro-batch size fits (now 1)\n") &&
                                  Catch::Contains("  recompute: full  5.0 of 6.0 GB\n"));
  const auto json = nlohmann::json::parse(to_json(report));
  CHECK(json["peak"]["bytes"]["activations"] == 5e9);
  CHECK(json["timeline"][2]["phase"] == "optimizer");
  CHECK(json["largest_micro_batch"] == 0);
}

TEST_CASE("Where the time of a training goes, its bill and how its batch is split", "[golden]") {
  Result result = short_step(0.5);
  TrainResult& train = *result.train();
  CHECK(goodput_section(train) + bill_section(train) + split_section(train) == "");
  TrainResult::Goodput goodput;
  goodput.mtbf = Seconds(36000.0);
  goodput.every = 100;
  goodput.by_daly = 0.91;
  goodput.kinds = {"GPUs", "network"};
  goodput.simulated.interruptions = {3.0, 1.0};
  goodput.simulated.shares = {.useful = 0.9, .checkpoints = 0.06, .lost = 0.04};
  goodput.simulated.mean = Seconds(1000.0);
  goodput.simulated.p50 = Seconds(990.0);
  goodput.simulated.p90 = Seconds(1100.0);
  goodput.simulated.p99 = Seconds(1200.0);
  train.goodput = goodput;
  train.split = TrainResult::Split{"as fast as they are", {{"a100", 2, 3}, {"h100", 1, 6}}, Seconds(0.75)};
  train.bill = TrainResult::Bill{{}, {}, {}, {}, 12345.0, 5000.0, 2500.0};
  check_whole("where-time-training-goes-bill.txt", goodput_section(train) + bill_section(train) + split_section(train));
  train.time_to_train = Seconds(7200.0);
  train.goodput->simulated.interruptions = {0.0, 0.0};
  train.goodput->intervals = IntervalSearch{{}, {}, {120, 0.92}, {}};
  check_whole("where-time-training-goes-bill-2.txt", goodput_section(train));
  train.goodput->intervals->young = IntervalChoice{80, 0.88};
  train.goodput->intervals->daly = IntervalChoice{90, 0.89};
  check_whole("where-time-training-goes-bill-3.txt", goodput_section(train));
}

}  // namespace foretrain::test
