// `foretrain calibrate` where there is a GPU, or a folder of measurements of one.
#pragma once

#include <string>
#include <vector>

#include "reports/cli/command.hpp"

namespace foretrain {

struct GpuCalibrateOptions {
  std::string from;    ///< a folder measured before; empty: measure now
  std::string output;  ///< the calibration
  std::string hardware;
  std::vector<std::string> suites;  ///< empty: all
  bool quick = false;
  bool check = false;
};

/// Which parts of `--only` are the GPU's: "gpu", "gpu.SUITE", or a suite that shares its name with no part of the host.
/// Throws UsageError for what is neither these nor in `host_parts`.
struct Parts {
  std::vector<std::string> host;
  std::vector<std::string> suites;
  bool gpu = false;
};
Parts divide_parts(const std::vector<std::string>& only, const std::vector<std::string>& host_parts);

/// Measures (unless a folder is given), fits, writes, and prints what came of it.
ExitStatus calibrate_gpu(const GpuCalibrateOptions& options);

}  // namespace foretrain
