// The program that measures GPUs, foretrain-gpu, as a child process.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace foretrain {

/// Beside this program, or in the folder that FORETRAIN_GPU_PROGRAMS names; nothing where it was not built.
std::optional<std::filesystem::path> find_gpu_program();

/// Whether it finds a GPU that it can use; `why` is what it said when it does not.
struct GpuPresence {
  bool present = false;
  std::string why;
};
GpuPresence probe_gpu();

/// Runs it with these arguments, its output going where this program's goes, and waits. An interruption reaches both,
/// and the child ends by itself, keeping what it has, or is killed half a minute later. The exit status, or 128 +
/// signal. Throws UsageError when it cannot be started.
int run_gpu_program(const std::vector<std::string>& arguments);

}  // namespace foretrain
