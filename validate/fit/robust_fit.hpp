// Fits constants to measured points so that outliers hardly matter, and says how well the points determine them.
#pragma once

#include <Eigen/Core>
#include <functional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/cost/calibration.hpp"

namespace foretrain {

/// The row of calibration_rows() with this name. Throws UsageError for an unknown one, naming the nearest.
const ConstantRow& constant_row(const std::string& name);

/// "power.hopper_tensor_pj": the energy of a generation's operations (index into chip_generations).
std::string energy_name(std::size_t generation, bool tensor);

/// A measured point that the model predicts.
struct Observation {
  std::string name;
  std::string group;  ///< every group weighs the same in a fit, and has an error of its own
  Seconds measured;
  std::function<Seconds(const Calibration&)> predict;
};

/// The loss of one point, d = ln(predicted / measured): sqrt(d² + 0.02²). Quadratic for points within two percent, for
/// outliers their distance (pseudo-Huber; Charbonnier et al. 1997).
double robust_loss(double distance);

struct RobustConstant {
  std::string name;
  double before = 0.0, after = 0.0;  ///< in the constant's unit
  double standard_error = 0.0;       ///< in the same unit; 0 for one at its bound
  bool at_bound = false;             ///< at the edge of what is sensible: the points would have it beyond
  std::string source = {};           ///< of a GPU's calibration
};
/// Why a constant keeps its published value.
struct Undetermined {
  std::string name, why;
};

struct RobustFit {
  Calibration calibration;
  std::vector<RobustConstant> constants;
  std::vector<Undetermined> undetermined;
  std::vector<std::string> covariance_names;  ///< the constants that are not at a bound
  Eigen::MatrixXd covariance;                 ///< of these, in their units
  int evaluations = 0;                        ///< of all points
};

/// Minimises the mean over groups of the mean loss over `constants`, which name rows of calibration_rows(): Nelder and
/// Mead's simplices, of no more than `budget` evaluations, then Gauss-Newton steps. The covariance is the sandwich A⁻¹
/// B A⁻¹ of M-estimators (Huber and Ronchetti, Robust Statistics, 2009, section 7.6) with A = Σ w ψ' JᵀJ, B = Σ w² ψ²
/// JᵀJ; ψ' and ψ² are means of each group, ψ² scaled by n / (n − p) for the p constants fitted, and J the derivatives
/// of ln(predicted) by differences of one percent. Constants on which no point depends return to the value that `start`
/// has. So do, the worst first, those whose standard error exceeds half of the larger of their fitted and published
/// values. The others are then fitted again. Throws UsageError for an unknown name. No point: no constant is
/// determined.
RobustFit robust_fit(const std::vector<Observation>& points, const std::vector<std::string>& constants,
                     const Calibration& start, int budget = 3000);

}  // namespace foretrain
