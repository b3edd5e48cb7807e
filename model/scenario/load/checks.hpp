// What no single key can tell: whether cluster, workload and plan fit together.
#pragma once

#include <string>
#include <string_view>

#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Where a dotted key was written, else the nearest key above it that was.
SourcePosition position_of(const Scenario& scenario, std::string_view key);

/// Throws ScenarioError at the key: what it says, and what is expected.
[[noreturn]] void fail(const Scenario& scenario, std::string_view key, std::string got, std::string expected);

/// Throws ScenarioError at the guilty key: factors whose product is not the number of GPUs; a global batch that data ×
/// micro-batch does not divide; heads, key–value heads, feed-forward width, sequence or experts that their factor does
/// not divide; more pipeline chunks than layers; interleaving without a pipeline; transformer plans for other networks;
/// parameter servers with sharded optimizers, more of them than GPUs or spare machines, or with what they know for data
/// parallelism alone; compression that the workload or algorithm cannot have; levels without a hierarchy; background
/// traffic beside a workload that uses no link.
void check_scenario(const Scenario& scenario);

}  // namespace foretrain
