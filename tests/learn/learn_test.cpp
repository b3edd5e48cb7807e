// Stacks made up here: their "measured" steps are the model's own under a setting that the learner must find again.
#include "validate/learn/learn.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "validate/learn/stack_file.hpp"

namespace foretrain::test {

namespace {

/// Small and large micro-batches on one to four machines: dispatch shows in the small ones, kernels in the large ones,
/// the network where there is one.
std::vector<Scenario> runs() {
  std::vector<Scenario> scenarios;
  for (const int nodes : {1, 2, 4}) {
    for (const int micro_batch : {1, 2, 8, 16}) {
      const std::string text = fmt::format(
          "cluster: {{ node: dgx-a100-80gb, nodes: {} }}\n"
          "workload: {{ train: {{ global_batch: {}, micro_batch: {}, model: {{ family: gpt, layers: 12, hidden: 1024, "
          "heads: 16, vocabulary: 51200, sequence: 1024 }} }} }}\n",
          nodes, 16 * micro_batch * nodes, micro_batch);
      scenarios.push_back(load_scenario_text(text, "run.yaml"));
    }
  }
  return scenarios;
}

struct MadeUpStack {
  std::vector<Scenario> scenarios = runs();
  std::vector<StackParameter> parameters = stack_parameters({2, 4}, false);
  StackSetting truth = StackSetting(parameters.size(), 0.0);
  std::vector<double> measured;  ///< s
  std::vector<int> nodes;

  MadeUpStack() {
    set("workload.train.layer_dispatch", 2.8);
    set("step.kernel_stretch", 0.1);
    set("cluster.network.scaling: 4", 0.7);
    for (const Scenario& scenario : scenarios) {
      measured.push_back(step(scenario, truth));
      nodes.push_back(scenario.cluster.nodes);
    }
  }
  void set(const std::string& name, double position) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name == name) truth[i] = position;
    }
  }
  [[nodiscard]] double step(const Scenario& scenario, const StackSetting& setting) const {
    return foretrain::predict(of_stack(scenario, parameters, setting), Fidelity::estimate).time().value();
  }
  [[nodiscard]] PredictRuns predict() const {
    return [this](const std::vector<StackSetting>& settings) {
      std::vector<RunResidual> residuals;
      for (std::size_t i = 0; i < scenarios.size(); ++i) {
        residuals.push_back({std::log(step(scenarios[i], settings[i]) / measured[i]), std::nullopt});
      }
      return residuals;
    };
  }
  [[nodiscard]] const LearnedParameter& learned(const LearnedStack& stack, const std::string& name) const {
    for (const LearnedParameter& one : stack.parameters) {
      if (one.parameter.name == name) return one;
    }
    throw InternalError(name);
  }
};

}  // namespace

TEST_CASE("A stack's dispatch, kernels and network are found again from its steps") {
  const MadeUpStack made_up;
  const LearnedStack stack = learn_stack(made_up.parameters, made_up.nodes, made_up.predict());
  for (const char* name : {"workload.train.layer_dispatch", "step.kernel_stretch"}) {
    const LearnedParameter& found = made_up.learned(stack, name);
    INFO(name);
    CHECK(found.determined);
    for (std::size_t i = 0; i < made_up.parameters.size(); ++i) {
      if (made_up.parameters[i].name != name) continue;
      CHECK(found.parameter.value(found.position) == Approx(found.parameter.value(made_up.truth[i])).epsilon(0.05));
    }
  }
  CHECK(made_up.learned(stack, "workload.train.layer_overhead").position == Approx(0.0).margin(0.05));
  CHECK(stack.assumed.mean > 0.2);
  CHECK(stack.fitted.mean < 0.02);
  CHECK(stack.left_out.mean < 0.05);
  CHECK(stack.unexplained.empty());
}

TEST_CASE("A run that paused is named, and moves nothing") {
  MadeUpStack made_up;
  made_up.measured[3] *= 5.0;
  const LearnedStack stack = learn_stack(made_up.parameters, made_up.nodes, made_up.predict());
  CHECK(stack.unexplained == std::vector<std::size_t>{3});
  const LearnedParameter& stretch = made_up.learned(stack, "step.kernel_stretch");
  CHECK(stretch.parameter.value(stretch.position) == Approx(1.025 * std::exp(0.1)).epsilon(0.05));
}

TEST_CASE("A learned stack's file is a trainer that predicts what its setting does") {
  const MadeUpStack made_up;
  const LearnedStack stack = learn_stack(made_up.parameters, made_up.nodes, made_up.predict());
  StackSetting setting;
  for (const LearnedParameter& one : stack.parameters) setting.push_back(one.position);
  LearnedFrom from{"runs.csv", "well-tuned", {}, made_up.nodes};
  for (const Scenario& scenario : made_up.scenarios) from.names.push_back(scenario.name);
  const TemporaryFolder folder;
  const std::string file = folder.write("stack.yaml", stack_file(stack, from)).string();
  const std::string text =
      "cluster: { node: dgx-a100-80gb, nodes: 4 }\n"
      "workload: { train: { global_batch: 64, micro_batch: 1, model: { family: gpt, layers: 12, hidden: 1024, heads: 16, "
      "vocabulary: 51200, sequence: 1024 } } }\n";
  const Scenario by_file = load_scenario_text(text, "run.yaml", {"plan.trainer=" + file});
  const double expected = made_up.step(load_scenario_text(text, "run.yaml"), setting);
  CHECK(foretrain::predict(by_file, Fidelity::estimate).time().value() == Approx(expected).epsilon(2e-3));  // the file has four digits
  CHECK(by_file.trainer == "stack");
  REQUIRE(by_file.learned);
  CHECK(by_file.learned->most_nodes == 4);
  const Result within = foretrain::predict(by_file, Fidelity::estimate);
  CHECK(within.uncertainty_high / within.time() == Approx(1.0 + by_file.learned->spread).epsilon(0.01));
  const Scenario larger = load_scenario_text(text, "run.yaml", {"plan.trainer=" + file, "cluster.nodes=8"});
  const Result beyond = foretrain::predict(larger, Fidelity::estimate);
  CHECK(beyond.uncertainty_high / beyond.time() > within.uncertainty_high / within.time());
  CHECK_FALSE(beyond.warnings.empty());
}

TEST_CASE("Runs that measure no time teach nothing") {
  const std::vector<StackParameter> parameters = stack_parameters({}, true);
  const PredictRuns memory_alone = [](const std::vector<StackSetting>& settings) {
    return std::vector<RunResidual>(settings.size(), RunResidual{std::nullopt, 0.1});
  };
  CHECK_THROWS_AS(learn_stack(parameters, {1, 1, 1}, memory_alone), UsageError);
}

}  // namespace foretrain::test
