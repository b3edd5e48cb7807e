// The command line of foretrain-gpu.
#pragma once

#include <string>
#include <vector>

namespace foretrain::gpu {

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

}  // namespace foretrain::gpu
