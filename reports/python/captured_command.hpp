// A command of the program, as the command line runs it, for callers that want what it prints.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace foretrain {

struct CommandOutput {
  int status = 0;                ///< ExitStatus
  std::string output, messages;  ///< text of stdout and stderr
};

/// Runs `foretrain ARGUMENTS…` in a process of its own. Throws what the command throws: ScenarioError with its
/// position, UsageError, std::runtime_error. `stop` is asked several times a second; when it says so the process is
/// ended, and the output is empty.
CommandOutput run_command(const std::vector<std::string>& arguments, const std::function<bool()>& stop);

}  // namespace foretrain
