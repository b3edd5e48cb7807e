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

/// Throws ScenarioError at the key: what it says, and what is expected.
[[noreturn]] void fail(const Scenario& scenario, std::string_view key, std::string got, std::string expected);
void fail_if(const Scenario& scenario, bool wrong, std::string_view key, std::string_view got,
             std::string_view expected);
/// The same with texts that are made of values.
template <typename... Args>
requires(sizeof...(Args) > 0) void fail_if(const Scenario& scenario, bool wrong, std::string_view key,
                                           Format<Args...> got, Format<Args...> expected, const Args&... args) {
  if (wrong) fail(scenario, key, fmt::format(got, args...), fmt::format(expected, args...));
}

/// Throws ScenarioError at the guilty key: factors whose product is not the number of GPUs. Refuses a global batch that
/// data × micro-batch does not divide, and heads, feed-forward width, sequence or experts that their factor does not
/// divide; more pipeline chunks than layers; interleaving without a pipeline; transformer plans for other networks;
/// background traffic beside a workload that uses no link; and what the checks below find.
void check_scenario(const Scenario& scenario);

/// Parameter servers, compression and levels that workload, plan or cluster cannot have.
void check_sync(const Scenario& scenario);

void check_failures(const Scenario& scenario);
/// Unequal batches, and processors that train beside GPUs.
void check_split(const Scenario& scenario);
/// Stated layers of stages that do not add up to the model's.
void check_stage_layers(const Scenario& scenario);

/// A sentence with the reason for each key that the scenario states and that means nothing to its plan. They are no
/// errors: a sweep goes over plans to which they mean something, too.
std::vector<std::string> ignored_keys(const Scenario& scenario);

}  // namespace foretrain
