// Calibration of a model's predictions by measured runs on the same machine.
#pragma once

#include <string>
#include <vector>

#include "model/result.hpp"
#include "model/scenario/load/cases.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// A measured run beside its prediction.
struct AnchorRun {
  double ratio = 1.0;    ///< measured over predicted time
  double waiting = 0.0;  ///< share of the predicted step that is exposed communication
  double spread = 0.0;   ///< standard deviation of ln(measured time) that the run itself states (replay.spread)
};

/// Two factors by which a machine differs from its description: `computing` for everything that a rank does by itself,
/// `network` for what it then waits for. With r, w of a run its ratio and its share of waiting,
///
///   ln r = (1 − w) · ln computing + w · ln network + noise
///
/// Before any run both logarithms are normal about 0 with standard deviation ln 2, a modelling choice: twice as slow or
/// as fast is no surprise. The noise of a run is its own spread, and what runs of one model differ by among each other,
/// whatever anchors say (anchor_scatter). The mean and covariance after all runs are those of linear regression
/// (Bishop, "Pattern Recognition and Machine Learning", 2006, section 3.3). So a run of one process says nothing of the
/// network, a run between hosts something of both, and several that wait unequally long tell the two apart.
struct Anchor {
  int runs = 0;
  double computing = 1.0;
  double network = 1.0;
  double computing_variance = 0.0, network_variance = 0.0;  ///< of the logarithms
  double spread = 0.0;  ///< of the runs about the two factors: root mean square of ln r less what they explain
  bool waits = false;   ///< a run waited for the network
};
Anchor anchor_of(const std::vector<AnchorRun>& runs);

/// Standard deviation of ln(measured / predicted) among the runs of a model. Measured: nine of ten of the steps of
/// cases_host_training.csv, anchored by each model's first step of one process, lie within 14 % (`validate --anchor 1`,
/// 296 rows), 0.08 for one standard deviation. Half of the variance is that of the anchor.
inline constexpr double anchor_scatter = 0.0563;

/// "3 steps, ± 4 % among each other".
std::string anchor_text(const Anchor& anchor);

/// The run of a row's step. Throws UsageError where it measures no time, or the result is of no training.
AnchorRun anchor_run(const Case& row, const Result& result);

/// The same work where everything that a rank does by itself takes `factor` times as long: on a processor all its
/// operators, on a GPU the kernels of layers and what the host does for them.
Scenario computing_slower(Scenario scenario, double factor);

/// `result` is that of computing_slower(…, anchor.computing): its waiting is multiplied by the network's factor, and
/// the interval becomes that of the runs where it is narrower.
Result anchored(Result result, const Anchor& anchor, const std::string& source);

}  // namespace foretrain
