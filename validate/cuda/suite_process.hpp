// A suite in a process of its own: what goes wrong on the GPU ends with it.
#pragma once

#include <string>
#include <vector>

namespace foretrain::gpu {

/// On which the child of a suite says what it does, one line each: "begin NAME", "end STATUS NAME", "late NAME",
/// "warn TEXT" and, before it gives up, "fatal TEXT".
inline constexpr int status_descriptor = 3;

struct SuiteTask {
  std::string suite, folder;
  bool quick = false;
  bool verify = true;
  int device = 0;
  std::vector<std::string> passed_over;
};

/// Measures what the folder does not hold yet and returns an exit_status.
int run_suite_process(const SuiteTask& task);

/// The file of a suite in the folder of measurements.
std::string journal_path(const std::string& folder, const std::string& suite);

}  // namespace foretrain::gpu
