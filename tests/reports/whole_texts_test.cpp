// Pages of text, each checked as a whole, from values made by hand.
#include "reports/explain/comparison.hpp"
#include "reports/explain/explanation.hpp"
#include "reports/result/goodput_report.hpp"
#include "reports/studies/memory_report.hpp"
#include "tests/catch.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

namespace {

Remedy remedy(const char* name, double speedup, std::vector<std::string> overrides = {}, double gigabytes = 40.0) {
  return {name, std::move(overrides), speedup, short_step(0.1 / speedup, gigabytes), ""};
}

}  // namespace

TEST_CASE("The page of an explanation: what bounds it, what resources and remedies are worth") {
  Explanation e;
  e.result = short_step(0.1);
  e.path = {{"waiting for data", 0.1, 0.1}, {"communication", 0.25, 0.2}};
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
                {"none", {}, 1.0, std::nullopt, "there is no such thing"}};
  CHECK(to_text(e) == R"(a step  [flows]: 100 ms, 640 samples/s

Bottleneck: communication
  waiting for data  10.0 %  not above  10.0 %
  communication     25.0 %  above      20.0 %  ◄
  What helps: overlap more

The chain of tasks that nothing else can hide
  compute              75.0 ms  75.0 %  ███████████▎
  gradient all-reduce  25.0 ms  25.0 %  ███▊

By chance
  P50 100 ms · P90 105 ms · P99 110 ms, were devices to differ by 2.0 % and
  messages by 5.0 % from step to step.

What each resource is worth
  resource    10 % faster  10 % slower   share
  ────────────────────────────────────────────────────────
  arithmetic       -6.0 %       +7.0 %  65.0 %  █████████▊
  memory           +0.0 %       +0.1 %   1.0 %  ▏
  No part in it: disk, host

What would help, each by itself
  change        faster                   step  --set
  ──────────────────────────────────────────────────────────────────────────────
  bf16         +50.0 %                66.7 ms  plan.precision=bf16 --set
                                               'plan.sync={ a: 1 }'
  more memory   +0.6 %  99.4 ms, does not fit  'plan.x=f(1)'
  No difference: same, as well
  Slower: worse (-10.0 %)
  Not possible here:
    none: there is no such thing
)");
  e.remedies = {remedy("same", 1.0)};
  e.estimate = short_step(0.09);
  e.estimate->fidelity = Fidelity::estimate;
  e.path.clear();
  e.critical_path.clear();
  e.spread.reset();
  e.sensitivities.resize(1);
  CHECK(to_text(e) == R"(a step  [flows]: 100 ms, 640 samples/s

What follows is predicted by estimate, and held against what that says of the
scenario: 90.0 ms. As if no two transfers met, that is; --what-ifs flows
simulates them, which takes minutes.

What each resource is worth
  resource    10 % faster  10 % slower   share
  ────────────────────────────────────────────────────────
  arithmetic       +4.4 %      +18.9 %  65.0 %  █████████▊

What would help, each by itself
  nothing of what was tried
  No difference: same
)");
}

TEST_CASE("Servers are told beside a ring, with what sets their pace") {
  Explanation e;
  e.result = short_step(0.1);
  e.remedies = {remedy("servers", 0.5), remedy("synchronisation by ring", 1.0)};
  e.remedies[0].result->train()->parameter_server = eight_workers();
  const auto told = [&] {
    const std::string text = to_text(e);
    return text.substr(text.find("\nParameter servers"));
  };
  CHECK(told() == R"(
Parameter servers
  1 parameter server is slower than a ring: 320 samples/s against 640. Alone,
  computing would take 208 ms, the servers' busiest link 77.3 ms, adding up 13.4
  ms: the pace is set by the workers' computing. Without servers 25.0 ms of
  communication is exposed.
)");
  ParameterServerResult& servers = *e.remedies[0].result->train()->parameter_server;
  servers.link_bound = Seconds(0.3);
  CHECK_THAT(told(), Catch::Contains("set by the servers'"));
  servers.server_bound = Seconds(0.4);
  CHECK_THAT(told(), Catch::Contains("adding up on the"));
  // The scenario has servers itself, and the ring is a remedy.
  e.result.train()->parameter_server = eight_workers();
  e.remedies.erase(e.remedies.begin());
  CHECK(told() == R"(
Parameter servers
  1 parameter server is slower than a ring: 640 samples/s against 640. Alone,
  computing would take 208 ms, the servers' busiest link 77.3 ms, adding up 13.4
  ms: the pace is set by the workers' computing. Without servers 25.0 ms of
  communication is exposed.
)");
}

TEST_CASE("The page of a comparison has what differs above what came out") {
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
  CHECK(comparison_text({one, two}) == R"(  [1] a step  [flows]
  [2] another  [flows]

                             [1]                     [2]
  ──────────────────────────────────────────────────────
  Plan data                    8                       4
  Machines                  a, b                       a
  Plan zero                                            1
  ──────────────────────────────────────────────────────
  time                    100 ms                  125 ms
  samples/s                  640                     512
  tokens/s per GPU                                   125
  MFU                     40.0 %                  40.0 %
  compute                75.0 ms                 93.8 ms
  exposed communication  25.0 ms                 31.2 ms
  pipeline bubble            0 s                     0 s
  waiting for data           0 s                     0 s
  host overhead              0 s                     0 s
  optimizer                  0 s                     0 s
  memory of a GPU        40.0 GB  90.0 GB (does not fit)

  [2] is 1.25 times as slow as [1]. Of the time that a sample takes in [1]:
  compute +18.7 %, exposed communication +6.2 %.
)");
}

TEST_CASE("The page of a GPU's memory has a row for each part that is used") {
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
  CHECK(to_text(report) == R"(by hand

Memory of the fullest GPU (pipeline stage 3): fits, 9.00 GB of 10.0 GB (small)
Host memory of a node: DOES NOT FIT, 60.0 GB of 50.0 GB
Peak: forward of layer 3 (head), micro-batch 2

Fullest moment of each phase
               forward  optimizer
  weights      4.00 GB    4.00 GB  ████████████
  activations  5.00 GB          -  ███████████████
  ──────────────────────────────────────────────────────
  sum          9.00 GB    4.00 GB  peak, of the capacity

Largest micro-batch that fits: 1 (1 now)
)");
}

TEST_CASE("Where the time of a training goes, its bill and how its batch is split") {
  Result result = short_step(0.5);
  TrainResult& train = *result.train();
  CHECK(goodput_section(train) + bill_section(train) + split_section(train) == "");
  TrainResult::Goodput goodput;
  goodput.mtbf = Seconds(36000.0);
  goodput.every = 100;
  goodput.by_daly = 0.91;
  goodput.kinds = {"GPUs", "network"};
  goodput.simulated.interruptions = {3.0, 1.0};
  goodput.simulated.shares.useful = 0.9;
  goodput.simulated.shares.checkpoints = 0.06;
  goodput.simulated.shares.lost = 0.04;
  goodput.simulated.mean = Seconds(1000.0);
  goodput.simulated.p50 = Seconds(990.0);
  goodput.simulated.p90 = Seconds(1100.0);
  goodput.simulated.p99 = Seconds(1200.0);
  train.goodput = goodput;
  train.split = TrainResult::Split{"as fast as they are", {{"a100", 2, 3}, {"h100", 1, 6}}, Seconds(0.75)};
  train.bill = TrainResult::Bill{};
  train.bill->kwh = 5000.0;
  train.bill->watts = 12345.0;
  train.bill->kg_co2 = 2500.0;
  CHECK(goodput_section(train) + bill_section(train) + split_section(train) == R"(
Goodput with failures: 90.0 %
  steps that last   90.0 %  ███████████████████████████
  saving             6.0 %  █▊
  steps done again   4.0 %  █▎
  one failure in 10.0 h, 4 in this training: GPUs 75.0 %, network 25.0 %
  thirty days of steps last 16.7 min on average, P50 990 s · P90 18.3 min · P99
  20.0 min

The whole training
  electricity  12 kW on average · 5.00 K kWh
  CO2          2.50 t

Batch split: as fast as they are; equally many would take 750 ms, 150.0 % of this step
  micro-batches a step  replicas  each
  ────────────────────────────────────
  a100                         2     3
  h100                         1     6
)");
  train.time_to_train = Seconds(7200.0);
  train.goodput->simulated.interruptions = {0.0, 0.0};
  IntervalSearch search;
  search.best = {120, 0.92};
  train.goodput->intervals = search;
  CHECK(goodput_section(train) == R"(
Goodput with failures: 90.0 %
  steps that last   90.0 %  ███████████████████████████
  saving             6.0 %  █▊
  steps done again   4.0 %  █▎
  one failure in 10.0 h, 0 in this training
  steps between checkpoints: 100 (50.0 s); best by simulation 120 (60.0 s): 92.0
  %
  training lasts 16.7 min on average, P50 990 s · P90 18.3 min · P99 20.0 min
)");
  train.goodput->intervals->young = IntervalChoice{80, 0.88};
  train.goodput->intervals->daly = IntervalChoice{90, 0.89};
  CHECK(goodput_section(train) == R"(
Goodput with failures: 90.0 %
  steps that last   90.0 %  ███████████████████████████
  saving             6.0 %  █▊
  steps done again   4.0 %  █▎
  one failure in 10.0 h, 0 in this training
  steps between checkpoints: 100 (50.0 s); Young 80 (40.0 s): 88.0 % · Daly 90
  (45.0 s): 89.0 % · best by simulation 120 (60.0 s): 92.0 %; Daly's formula
  gives 91.0 % for this interval
  training lasts 16.7 min on average, P50 990 s · P90 18.3 min · P99 20.0 min
)");
}

}  // namespace foretrain::test
