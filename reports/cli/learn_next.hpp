// `foretrain learn --next`: which runs to measure before a plan is chosen.
#pragma once

#include <string>
#include <vector>

#include "reports/cli/command.hpp"

namespace foretrain {

struct NextOptions {
  std::string stack;  ///< STACK.yaml
  std::string input;  ///< a scenario whose plan is to be chosen, or a table of the plans to choose from
  std::vector<std::string> overrides;  ///< of the scenario
  std::vector<std::string> fixed;      ///< keys that keep the scenario's value, as `plan --fix` names them
  std::string budget;                  ///< "64 GPU-hours" for all runs together; empty: as many as they take
  int nodes = 0;                       ///< machines at hand; 0: the scenario's
  int runs = 3;
  bool json = false;
  int jobs = 1;
};

/// Throws ScenarioError for a file that is no learned stack, UsageError for a bad budget and where nothing is to be
/// chosen.
ExitStatus run_next(const NextOptions& options);

}  // namespace foretrain
