// The subcommands of foretrain-gpu, and what they share: their options, and files of a folder of results. Each returns
// the exit status and throws UsageError, GpuError or Interrupted.
#pragma once

#include <string>
#include <vector>

namespace foretrain::gpu {

int probe_command(const std::vector<std::string>& words);
int measure_command(const std::vector<std::string>& words);
int replay_command(const std::vector<std::string>& words);

struct Options {
  std::string folder;  ///< -o
  bool quick = false;
  std::vector<std::string> only;   ///< suites
  int limit = 0;                   ///< seconds; 0: not stated
  std::vector<std::string> files;  ///< words without a dash
};

/// Options of a subcommand with these names ("output", "quick", "only", "limit", "point-limit"), and files where it
/// takes some. Throws UsageError, also where a folder is needed and not named.
Options read_options(const std::vector<std::string>& words, const std::vector<const char*>& known, bool files);

/// Empty where there is none.
std::string file_text(const std::string& path);
/// Replaces the file in one step. Throws std::system_error.
void replace_file(const std::string& path, const std::string& text);

}  // namespace foretrain::gpu
