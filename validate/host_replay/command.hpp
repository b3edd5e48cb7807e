// Short-lived helper programs (ip, tc, ethtool) that must succeed.
#pragma once

#include <string>
#include <vector>

#include "model/base/process.hpp"

namespace foretrain {

/// Runs a program found on PATH, without a shell. Throws UsageError with the command and what it said when it cannot be
/// started or fails.
FilterResult run_command(const std::vector<std::string>& command, const std::string& input = "");

}  // namespace foretrain
