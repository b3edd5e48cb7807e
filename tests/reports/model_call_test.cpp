// How results say what a model's call is made of.
#include "reports/result/json.hpp"
#include "reports/result/text.hpp"
#include "tests/catch.hpp"
#include "tests/reports/sample_results.hpp"

using namespace foretrain;

namespace {

ModelCallResult compiled_call() {
  ModelCallResult call;
  call.execution = ExecutionMode::compiled;
  call.operators = 33;
  call.kernels = 11;
  call.fused = 14;
  call.folded = 8;
  call.host = Seconds(33e-6);
  call.device = Seconds(308e-6);
  call.intermediates = Bytes(1.81e6);
  return call;
}

}  // namespace

TEST_CASE("a model's call is told as text and survives JSON") {
  Result result;
  result.scenario = "calls";
  result.work.emplace<TasksResult>().time = Seconds(1.0);
  result.tasks()->finish["net"] = Seconds(1.0);
  result.tasks()->calls["net"] = compiled_call();
  const std::string text = to_text(result);
  CHECK_THAT(text, Catch::Contains("net: 33 operators in 11 kernels, 14 fused, 8 folded; 1.81 MB"));
  CHECK_THAT(text, Catch::Contains("compiled"));
  const ModelCallResult back = result_from_json(to_json(result)).tasks()->calls.at("net");
  CHECK(back.execution == ExecutionMode::compiled);
  CHECK(back.operators == 33);
  CHECK(back.kernels == 11);
  CHECK(back.fused == 14);
  CHECK(back.folded == 8);
  CHECK(back.host == Seconds(33e-6));
  CHECK(back.device == Seconds(308e-6));
  CHECK(back.intermediates == Bytes(1.81e6));
  // The front end's 33 us are less than the device's 308 us.
  CHECK_FALSE(back.front_end_bound());
}

TEST_CASE("a compiled training step says what was fused") {
  Result result = test::large_step();
  CHECK_THAT(to_text(result), !Catch::Contains("fused"));
  result.train()->execution = compiled_call();
  CHECK_THAT(to_text(result), Catch::Contains("Execution: compiled"));
  CHECK(result_from_json(to_json(result)).train()->execution->fused == 14);
}
