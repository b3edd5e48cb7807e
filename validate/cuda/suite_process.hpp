// A suite in a process of its own: what goes wrong on the GPU ends with it.
#pragma once

#include <string>

#include "validate/cuda/core/suite.hpp"

namespace foretrain::gpu {

/// Measures what the folder does not hold yet and returns an exit_status.
int run_suite_process(const SuiteTask& task);

/// The file of a suite in the folder of measurements.
std::string journal_path(const std::string& folder, const Suite& suite);

}  // namespace foretrain::gpu
