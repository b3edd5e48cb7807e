// Results as whole texts: every line that a step, an operator or a model's call can have, and when it has none.
#include "reports/result/text.hpp"
#include "reports/result/trace.hpp"
#include "tests/reports/sample_results.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {
namespace {

/// The text between the title and the breakdown.
std::string head_of(const Result& result) {
  const std::string text = to_text(result);
  const std::size_t begin = text.find("\n\n") + 1;
  return text.substr(begin, text.find("\nWhere the step's time goes") - begin);
}

}  // namespace

TEST_CASE("The head of a step: its range and causes, chance, checkpoints, and whether it fits", "[golden]") {
  Result result = short_step(0.5);
  CHECK(head_of(result) == R"(
  Step time     500 ms
  Throughput    128 samples/s
  MFU           40.0 % · 0 FLOP/s per GPU
  Peak memory   40.0 of 80.0 GB (fits)
)");
  TrainResult& train = *result.train();
  result.uncertainty_low = Seconds(0.4);
  result.uncertainty_high = Seconds(0.6);
  result.uncertainty_causes = {
      {"products", "", 0.7}, {"links", "", 0.255}, {"dispatch", "", 0.005}, {"copies", "", 0.0049}};
  result.provenance = {{"anchor.computing", 1.25, "", ConstantKind::measurement, "two runs"},
                       {"anchor.network", 0.5, "", ConstantKind::measurement, "two runs"}};
  result.routing = RoutingSpread{"hash", 40, Seconds(0.5), Seconds(0.55), Seconds(0.6)};
  train.spread = TrainResult::Spread{Seconds(0.5), Seconds(0.51), Seconds(0.52)};
  train.checkpoints = TrainResult::Checkpoints{
      100, "", Bytes(1e12), Seconds(2.0), Seconds(20.0), Seconds(0.75), Seconds(0.5025), Seconds(0.5)};
  train.tokens_per_second = 131072.0;
  train.tokens_per_second_per_gpu = 16384.0;
  train.bottleneck = "the network";
  train.memory.weights = Bytes(81e9);
  result.settings = {{"Machines", "", "8 x node", "", false},
                     {"Plan", "data", "8", "plan.data", true},
                     {"Plan", "tensor", "8", "plan.tensor", false}};
  check_whole("head-step-range-causes-chance.txt", head_of(result));
  // A single cause has no share; steps during a write of a checkpoint appear where they are longer.
  result.uncertainty_causes = {{"products", "", 0.996}};
  train.checkpoints->beside_write = Seconds(0.50000049);
  CHECK_THAT(head_of(result), Catch::Contains("                uncertainty from: products\n"));
  CHECK_THAT(to_text(result, TextOptions{true}), !Catch::Contains("during a write"));  // a millionth is rounding
  train.checkpoints->beside_write = Seconds(0.5000006);
  CHECK_THAT(to_text(result, TextOptions{true}),
             Catch::Contains("steps during a write over the training NICs take 500 ms\n"));
  result.uncertainty_causes = {{"products", "", 0.995}};
  CHECK_THAT(head_of(result), Catch::Contains("uncertainty from: products 100 %"));
  train.memory.capacity = Bytes(0.0);
  CHECK_THAT(to_text(result), !Catch::Contains("DOES NOT FIT") && !Catch::Contains("Peak memory"));
  train.breakdown = {};
  CHECK_THAT(to_text(result), !Catch::Contains("Where the step's time goes"));
}

TEST_CASE("Behind the breakdown: what is sent, samples, the execution, memory", "[golden]") {
  Result result = short_step(0.5);
  TrainResult& train = *result.train();
  train.communication["gradient all-reduce"] = {Seconds(0.125), Seconds(0.125)};
  train.communication[inside_layers] = {Seconds(0.25), Seconds(0.125)};
  train.communication[inside_layers].sent = Bytes(2e9);
  train.communication[inside_layers].algorithm = "ring";
  train.inside_layers["tensor all-reduce"] = {1.0, Bytes(2e9), Seconds(0.25)};
  train.buckets = TrainResult::Buckets{Bytes(25e6), "ddp"};
  train.token_use = TrainResult::TokenUse{900.0, 1000.0, 0.0, 0.0, Seconds(0.0)};
  ModelCallResult call;
  call.operators = 45;
  call.kernels = 1;
  call.intermediates = Bytes(1.2e6);
  train.execution = call;
  train.model = "mixed";
  train.parameters = 7e9;
  train.active_parameters = 7e9;
  train.bytes_per_parameter = Bytes(18.0);
  const auto rest = [&] {
    const std::string text = to_text(result, TextOptions{.verbose = true});
    return text.substr(text.find("\nCommunication"));
  };
  CHECK_THAT(to_text(result), Catch::Contains("\n  Model         mixed · 7.00 B parameters\n"));
  check_whole("behind-breakdown-sent-samples-execution.txt", rest());
  train.inside_layers["context ring"] = {1.0, Bytes(1e9), Seconds(0.125)};
  train.buckets->size = Bytes::infinity();
  train.token_use = TrainResult::TokenUse{900.0, 1000.0, 300.0, 1.5, Seconds(0.01)};
  train.execution->kernels = 30;
  train.execution->fused = 12;
  train.execution->folded = 3;
  train.active_parameters = 1e9;
  CHECK_THAT(to_text(result), Catch::Contains("  Model         mixed · 7.00 B parameters · 1.00 B active per token\n"));
  train.bytes_per_parameter = Bytes(0.0);
  result.warnings = {
      "the first thing to note is longer than a line of a page, and goes on below where it began to stand",
      "the second"};
  result.train()->framework_settings = {{"plan.execution", "eager", ResolvedSetting::From::trainer, "PyTorch"}};
  check_whole("behind-breakdown-sent-samples-execution-2.txt", rest());
}

TEST_CASE("Operators are identified by what they do: work, bytes alone, walks, or none", "[golden]") {
  const auto reported = [](const OperatorResult& op) {
    Result result;
    result.scenario = "one";
    result.work = op;
    return to_text(result);
  };
  OperatorResult op{Seconds(0.5), Flops(1e12), Bytes(2e9), "compute"};
  check_whole("operators-told-they-do-work.txt", reported(op));
  op.flops = Flops(0.0);
  check_whole("operators-told-they-do-work-2.txt", reported(op));
  op.per_access = Seconds(1e-7);
  op.memory.emplace();
  op.memory->peak = Bytes(3e9);
  op.memory->saved = Bytes(2e9);
  op.memory->workspace = Bytes(1e9);
  check_whole("operators-told-they-do-work-3.txt", reported(op));
  CHECK(reported({Seconds(0.5), Flops(0.0), Bytes(0.0), "latency"}) == R"(one (flows: simulated contention)

  Time          500 ms
  Bound by      latency
)");
}

TEST_CASE("A timeline's events are the Trace Event Format, with what they carry", "[golden]") {
  std::vector<TimelineEntry> entries = {
      {"stage 0 compute", "forward", Seconds(0.0), Seconds(1e-3), 0, "compute"},
      {"stage 0 network", "send \"x\"", Seconds(1e-3), Seconds(2e-3), -1, "communication"},
      {"stage 1 compute", "forward", Seconds(3e-3), Seconds(1e-3), 4, "compute"}};
  entries[1].moved = Bytes(4096.0);
  entries[1].algorithm = "ring";
  entries[1].after = {0};
  entries[2].rank_class = 1;
  check_whole("timeline-s-events-trace-event.txt", to_trace("a step", entries));
}

}  // namespace foretrain::test
