// Other programs, run as filters.
#pragma once

#include <string>
#include <vector>

namespace foretrain {

struct FilterResult {
  int status = 0;  ///< exit status; 128 + signal when a signal ended it
  std::string output;
  std::string errors;
};

/// Runs a program found on PATH, without a shell, feeds it `input` and collects what it writes. Throws
/// std::system_error when it cannot be started (ENOENT: it is not installed).
FilterResult run_filter(const std::vector<std::string>& command, const std::string& input);

}  // namespace foretrain
