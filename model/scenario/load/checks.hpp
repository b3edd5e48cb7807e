// Checks across keys: whether cluster, workload and plan fit together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// Position of a dotted key, else of the nearest key above it that was written.
SourcePosition position_of(const Scenario& scenario, std::string_view key);

/// A scenario whose parts are checked against each other.
struct CheckedScenario {
  const Scenario& scenario;
  const Plan& plan = scenario.plan;
  const Sync& sync = plan.sync;
  const Cluster& cluster = scenario.cluster;
  const TrainWorkload* train = std::get_if<TrainWorkload>(&scenario.workload);  ///< null: another kind of work
  bool servers = has_servers(sync.algorithm);

  /// Throws ScenarioError at the key: what it says, and what is expected.
  [[noreturn]] void fail(std::string_view key, std::string got, std::string expected) const;
  template <typename... Args>
  void fail_if(bool wrong, std::string_view key, Text<Args...> got, Text<Args...> expected, const Args&... args) const {
    if (wrong) fail(key, TextOf<Args...>::made(got, args...), TextOf<Args...>::made(expected, args...));
  }
};

/// Throws ScenarioError at the guilty key: factors whose product is not the number of GPUs. Refuses a global batch that
/// data × micro-batch does not divide, and heads, feed-forward width, sequence or experts that their factor does not
/// divide; more pipeline chunks than layers; interleaving without a pipeline; transformer plans for other networks;
/// background traffic beside a workload that uses no link; and what the checks below find.
void check_scenario(const Scenario& scenario);

/// Parameter servers, compression and levels that workload, plan or cluster cannot have; failures; unequal batches, and
/// processors that train beside GPUs.
void check_training(const Scenario& scenario);
/// Stated layers of stages that do not add up to the model's.
void check_stage_layers(const Scenario& scenario);

/// A sentence with the reason for each key that the scenario states and that means nothing to its plan. They are no
/// errors: a sweep goes over plans to which they mean something, too.
std::vector<std::string> ignored_keys(const Scenario& scenario);

}  // namespace foretrain
