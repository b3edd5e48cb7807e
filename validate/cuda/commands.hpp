// The subcommands of foretrain-gpu: one file each. Each returns the exit status and throws UsageError, GpuError or
// Interrupted.
#pragma once

#include <string>
#include <vector>

namespace foretrain::gpu {

int probe_command(const std::vector<std::string>& words);
int measure_command(const std::vector<std::string>& words);
int replay_command(const std::vector<std::string>& words);

}  // namespace foretrain::gpu
