// Fits constants of the operator models to measured times, and says how well they carry over to a GPU left out.
#pragma once

#include <string>
#include <vector>

#include "model/cost/calibration.hpp"
#include "model/hardware/gpu.hpp"
#include "model/scenario/load/cases.hpp"
#include "model/workload/operator_alone.hpp"

namespace foretrain {

/// One measured operator.
struct FitRow {
  std::string name;
  std::string group;  ///< errors are stated per group, and every group weighs the same in a fit
  OperatorWorkload work;
  Gpu gpu;
  Seconds measured;
};

/// The rows of tables whose cases are operators with a measured time. Throws ScenarioError at a case that is not.
std::vector<FitRow> fit_rows(const std::vector<Case>& cases);

/// The matmul constants, and the energies per operation that the rows speak of: by generation, and apart for CUDA and
/// tensor cores. Names of calibration_rows().
std::vector<std::string> default_fit_constants(const std::vector<FitRow>& rows);

struct FittedConstant {
  std::string name;
  double before = 0.0, after = 0.0;
};
struct GroupError {
  std::string group, gpu;
  int rows = 0;
  double mape = 0.0;  ///< mean of |predicted / measured - 1|
  double bias = 0.0;  ///< mean of predicted / measured - 1
};

/// Errors of a calibration, by group, in the order of the groups' first rows.
std::vector<GroupError> errors_of(const std::vector<FitRow>& rows, const Calibration& calibration);
/// Mean over all rows of a GPU, weighted by row.
double mape_of_gpu(const std::vector<GroupError>& errors, const std::string& gpu);

struct FitResult {
  Calibration calibration;
  std::vector<FittedConstant> constants;
  std::vector<GroupError> errors;  ///< of the rows that were fitted
  int evaluations = 0;
};

/// By least_loss() (robust_fit.hpp): every group weighs the same, and outliers hardly matter. `constants` name rows of
/// calibration_rows(); the others stay as they are. Throws UsageError for an unknown name.
FitResult fit(const std::vector<FitRow>& rows, const std::vector<std::string>& constants, const Calibration& start,
              int budget = 4000);

/// The GPUs of the rows, in the order of their first rows.
std::vector<std::string> gpus_of(const std::vector<FitRow>& rows);

/// Fits on every GPU but `gpu` and predicts its rows. The energies of its generation, which its own rows would fix,
/// come from the process rule (cost/power.hpp). Throws UsageError where no row or no other row is of that GPU.
struct LeftOut {
  std::string gpu;
  FitResult fitted;                     ///< on the others
  std::vector<FittedConstant> by_rule;  ///< energies of the left-out GPU's generation
  std::vector<GroupError> predicted;    ///< its rows
};
LeftOut leave_out(const std::vector<FitRow>& rows, const std::string& gpu, const std::vector<std::string>& constants,
                  const Calibration& start, int budget = 4000);

}  // namespace foretrain
