// A stack that was made up here, as its file, its table and its JSON say it.
#include "validate/learn/stack_file.hpp"

#include <nlohmann/json.hpp>

#include "model/scenario/keys/keys.hpp"
#include "model/scenario/load/load.hpp"
#include "model/scenario/plan/trainer_reader.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

const StackParameter& named(const std::vector<StackParameter>& parameters, const std::string& name) {
  return *std::ranges::find(parameters, name, &StackParameter::name);
}

/// An overhead of 200 us with 100 to 350 around it, a message's that nothing is known of beyond 0 to 100 us, and half
/// of the network's rate, a quarter to all of it.
LearnedStack made_up_stack() {
  const std::vector<StackParameter> all = stack_parameters({.nodes = {4}, .pipelined = true});
  LearnedStack stack;
  stack.parameters = {
      {named(all, "workload.train.layer_overhead"), std::log(3.0), std::log(1.5), 7, true},
      {named(all, "workload.train.message_overhead"), 0.0, std::log(2.0), 0, false},
      {named(all, "cluster.network.scaling.4"), std::log(2.0), std::log(2.0), 5, true},
  };
  return stack;
}

const LearnedFrom made_up_from = {"läufe.csv", "tuned", {"a", "b"}, {1, 4}};

}  // namespace

TEST_CASE("A learned setting stands between what one standard deviation to either side makes of it") {
  const std::string text = stack_file(made_up_stack(), made_up_from);
  CHECK_THAT(text, Catch::Contains("value: 200 us, kind: fit, source: "
                                   "\"läufe.csv: 7 runs, 1 σ range from 100 us to 350 us\""));
  CHECK_THAT(text, Catch::Contains("source: \"läufe.csv; on 4 machines 5 runs, likely from 25 % to 100 %\""));
  CHECK_THAT(text, Catch::Contains("workload.train.message_overhead: [ 0 us, 100 us ]"));

  const auto json = nlohmann::json::parse(to_json(made_up_stack(), made_up_from));
  CHECK_THAT(to_json(made_up_stack(), made_up_from), Catch::Contains("\"from\": \"läufe.csv\""));
  const auto& parameters = json["parameters"];
  CHECK(parameters[0]["low"].get<double>() == Approx(100e-6));
  CHECK(parameters[0]["value"].get<double>() == Approx(200e-6));
  CHECK(parameters[0]["high"].get<double>() == Approx(350e-6));
  CHECK(parameters[2]["low"].get<double>() == Approx(0.25));  // a rate falls where the position rises
  CHECK(parameters[2]["high"].get<double>() == Approx(1.0));
}

TEST_CASE("Settings of pipelines are read back from a learned stack's file") {
  const Scenario usual = load_scenario("gpt2-xl-dgx-a100");
  const YamlNode document = parse_yaml(stack_file(made_up_stack(), made_up_from), "stack.yaml");
  const std::vector<LikelySetting> settings = likely_settings(Field(document, "").mapping(keys::trainer), usual);
  const auto message = std::ranges::find_if(
      settings, [](const LikelySetting& one) { return one.parameter.name == "workload.train.message_overhead"; });
  REQUIRE(message != settings.end());
  CHECK(message->low == 0.0);
  CHECK(message->high == Approx(100e-6));
}

TEST_CASE("Memory beside tensors is learned in gigabytes around the base's, and never below nothing") {
  const Scenario usual = load_scenario(
      "gpt2-xl-dgx-a100", {"workload.train.reserved_memory=2 GB", "workload.train.pending_stream_buffers=50"});
  const std::vector<StackParameter> all = stack_parameters({.nodes = {}, .memory = true, .usual = &usual});
  const StackParameter& reserved = named(all, "workload.train.reserved_memory");
  CHECK(reserved.value(0.0) == 2e9);
  CHECK(reserved.value(3.0) == 5e9);
  CHECK(reserved.value(-9.0) == 0.0);
  CHECK(reserved.text(3.0) == "5 GB");
  const StackParameter& waiting = named(all, "workload.train.pending_stream_buffers");
  CHECK(waiting.value(1.0) == 60.0);
  CHECK(waiting.value(-2.0) == 30.0);
  CHECK(waiting.value(-9.0) == 0.0);
}
