// From a folder of raw measurements of a GPU to its calibration.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/cost/calibration.hpp"
#include "validate/fit/describe.hpp"
#include "validate/fit/fit_errors.hpp"
#include "validate/fit/points.hpp"
#include "validate/fit/raw.hpp"
#include "validate/fit/robust_fit.hpp"

namespace foretrain {

/// Whether what a stage fitted predicts points that its fit did not see better than what is published does. Its
/// constants are kept if they predict points left out better.
struct StageTrial {
  std::string name = {};
  int points = 0;  ///< that were fitted
  RobustFit fit;   ///< of all points that are not held out
  bool adopted = false;
  int judged = 0;                        ///< points that were left out of a fit and predicted
  bool held_out = false;                 ///< those that their suite held out; else every fifth of the others in turn
  double published = 0.0, fitted = 0.0;  ///< their mean absolute error, as published and as fitted
};

/// Fits `constants` to `points`, from `start`. The fit is adopted where the points left out lose less by it than by
/// `published`, by more than the standard error of that gain: L = Σ w (l(published) − l(fitted)) > sqrt(Σ (w (g −
/// L))²), where g is one point's gain, l its robust_loss(), and w gives each group the same weight, as the fit does.
/// If at least five points are held out these are judged; else the points are left out by fifths, each predicted by
/// a fit to the other four (cross-validation; Stone, J. R. Stat. Soc. B 36, 1974). One point alone cannot be judged.
StageTrial try_stage(const std::vector<Observation>& points, const std::vector<Observation>& held_out,
                     const std::vector<std::string>& constants, const Calibration& start, const Calibration& published);

/// "predicts 8 points left out no better (21.0 % off, 18.3 % as published)", or the same of one that was adopted.
std::string verdict(const StageTrial& trial);

/// Which constants the points of some families determine. Stages follow each other: a later one holds what earlier ones
/// found.
struct FitStage {
  std::string name;                    ///< "streaming"
  std::vector<std::string> families;   ///< of points (stage_family)
  std::vector<std::string> constants;  ///< candidates: those that the points leave open keep their published value
  /// So many of them are fitted, evenly chosen: a collective's flows are laid over the machine for every evaluation.
  std::size_t most_points = 1'000'000;
  bool of_steps = false;  ///< after all others, and after the table of measured products
};
/// Properties of the measurements that decide which points determine a constant.
struct MeasuredKinds {
  bool sustained = false;  ///< products that ran long enough for power to limit them: energies come from these
  bool steps = false;      ///< whole training steps
};
/// The table of stages. `gpu` says whose energies products can tell.
std::vector<FitStage> fit_stages(const Gpu& gpu, const MeasuredKinds& measured);
/// operator_family, "kernel in steps" of replays, "kernel of a framework" where foretrain-gpu's own kernels stand for
/// those of frameworks, or the point's kind where it is no operator.
std::string family_of(const PredictedPoint& point);
/// A product that ran for seconds.
bool is_sustained(const PredictedPoint& point);
/// The same with "matmul sustained" and "collective between nodes" apart.
std::string stage_family(const PredictedPoint& point);

struct GpuCalibration {
  std::string base;  ///< name of the calibration that the fit started from
  Machine machine;
  std::string gpu;  ///< its name: of the catalogue where it is known
  bool known = false;
  MeasuredFigures figures;
  std::string node;  ///< the machine as a hardware file (JSON)
  Calibration calibration;
  std::vector<RobustConstant> fitted;
  std::vector<RobustConstant> direct;  ///< read off measurements of their own: the median of what they say
  std::vector<Undetermined> undetermined;
  std::vector<StageTrial> stages;  ///< those that had points
  std::vector<std::string> covariance_names;
  Eigen::MatrixXd covariance;            ///< zero between stages
  std::map<std::string, double> spread;  ///< by family
  std::vector<PointErrors> errors;
  std::vector<AccuracyBar> bars;
  std::vector<PointPair> pairs;
  std::vector<MeasuredMatmul> measured_matmuls;  ///< empty where they do not help points held out
  std::string matmul_note;                       ///< result of the table, in words
  std::vector<std::string> notes;                ///< points that do not steer a search, and why
  std::map<std::string, SuiteCount> suites;
  std::vector<std::string> not_understood;
};

/// Fits a folder. `cpu`: the `cpu:` of a detected hardware file, where this is the measured machine. Throws
/// ScenarioError and UsageError for what cannot be read; suites that are missing or failed leave their constants
/// published.
GpuCalibration fit_gpu(const RawMeasurements& raw, const YamlNode* cpu = nullptr);

/// "foretrain calibration 1".
std::string to_json(const GpuCalibration& calibration);

/// The calibration with a table whose log residuals are those of its constants.
Calibration with_table(Calibration calibration, const std::vector<MeasuredMatmul>& rows, const Gpu& gpu);

/// Keeps the table of measured products where points that it does not hold are predicted no worse with it; the result's
/// `matmul_note` says which.
void keep_table_if_it_helps(const std::vector<PredictedPoint>& points, const Gpu& gpu, GpuCalibration& result);

/// Latency and L2 from walks (`points`, predicted on a node without measured figures), links from copies and rings.
MeasuredFigures measured_figures(const RawMeasurements& raw, const std::vector<PredictedPoint>& points);

/// Constants of the host, without a fit: each from the records that measure it; nothing for those that were not
/// measured, or to figures beyond what is sensible. `published` divides a round trip between its ends.
std::vector<RobustConstant> direct_constants(const RawMeasurements& raw, const HostConstants& published);

}  // namespace foretrain
