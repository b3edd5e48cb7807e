// Fits constants of the operator models to measured times, and says how well they carry over to a GPU left out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/scenario/load/cases.hpp"
#include "validate/fit/fit_errors.hpp"
#include "validate/fit/robust_fit.hpp"

namespace foretrain {

/// One measured operator; every group weighs the same in a fit, and errors are stated per group.
struct FitRow : Observation {
  std::string gpu;
  std::pair<std::size_t, bool> energy;  ///< of operations of its chip's generation; whether of tensor cores
};

/// The rows of tables whose cases are operators with a measured time. Throws ScenarioError at a case that is not.
std::vector<FitRow> fit_rows(const std::vector<Case>& cases);

/// The matmul constants, and the energies per operation that the rows speak of: by generation, and apart for CUDA and
/// tensor cores. Names of calibration_rows().
std::vector<std::string> default_fit_constants(const std::vector<FitRow>& rows);

std::vector<PointErrors> errors_of(const std::vector<FitRow>& rows, const Calibration& calibration);

struct FitResult {
  RobustFit found;
  std::vector<PointErrors> errors;  ///< of the rows that were fitted
};

/// robust_fit() of the rows. Throws UsageError for an unknown constant.
FitResult fit(const std::vector<FitRow>& rows, const std::vector<std::string>& constants, const Calibration& start,
              int budget = 4000);

/// The GPUs of the rows, in the order of their first rows.
std::vector<std::string> gpus_of(const std::vector<FitRow>& rows);

/// Fits on every GPU but `gpu` and predicts its rows. The energies of its generation, which its own rows would fix,
/// come from the process rule (cost/power.hpp). Throws UsageError where no row or no other row is of that GPU.
struct LeftOut {
  std::string gpu;
  FitResult fitted;                     ///< on the others
  std::vector<RobustConstant> by_rule;  ///< energies of the left-out GPU's generation
  std::vector<PointErrors> predicted;   ///< its rows
};
LeftOut leave_out(const std::vector<FitRow>& rows, const std::string& gpu, const std::vector<std::string>& constants,
                  const Calibration& start, int budget = 4000);

}  // namespace foretrain
