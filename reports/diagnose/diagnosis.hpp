// A measured step beside its prediction, and which single cause would explain the difference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/planning/plan_search.hpp"
#include "model/result.hpp"
#include "reports/diagnose/trace_diagnosis.hpp"
#include "reports/explain/what_if.hpp"

namespace foretrain {

/// A step with a cause, predicted.
struct CauseTimes {
  std::optional<double> share = {};        ///< the severity: remaining share of a speed, bandwidth or NICs
  Seconds step = {};                       ///< with pauses
  Breakdown parts = {};                    ///< without pauses; of trainings
  Seconds pause = {}, communication = {};  ///< as in StepEvidence
  Bytes bucket = Bytes::infinity();
};

/// A cause at the size that explains the measured step best.
struct StepCause : CauseTimes {
  std::string name = {}, remedy = {};       ///< "one slow GPU", "replacement of the slow GPU"
  std::string size = {};                    ///< "71 % of its speed"; a setting has none
  std::vector<std::string> overrides = {};  ///< as for --set, where the cause can be stated so
  double explained = 0.0;                   ///< share of the difference between measured and expected
  double likelihood = 0.0;                  ///< of all causes, and of none
  std::string command = {}, look_at = {};
};

/// The measured step after a change; `without` the likeliest cause, or by one change of remedies().
struct StepChange {
  std::string name;
  std::vector<std::string> overrides;
  Seconds step;
  double speedup = 1.0;
};

/// Evidence about a measured step.
struct StepEvidence {
  Seconds step;
  std::optional<double> varies = {};          ///< P90 of the measured steps over their median, from a log
  Seconds pause = {};                         ///< of `step`: what checkpoints add to the mean step, from a log
  std::optional<Breakdown> parts = {};        ///< of the rest, from traces
  std::optional<Seconds> lag = {};            ///< as in TraceDiagnosis
  std::optional<Seconds> communication = {};  ///< hidden or not, without waiting; from traces
  std::optional<Bytes> bucket = {};           ///< of gradients, from traces
};

struct StepDiagnosis {
  std::string scenario;
  Seconds measured, expected, low, high;  ///< the 90 % interval of the prediction
  std::string source = {};                ///< source of the measured step; may be empty
  double none = 1.0;                      ///< likelihood that the prediction is as far off, and there is no cause
  bool explained = true;                  ///< by one cause: its step's interval holds the measured one; or within()
  std::vector<StepCause> causes = {};     ///< likeliest first
  std::vector<StepChange> changes = {};   ///< three, greatest gain first, from the state with the likeliest cause
  [[nodiscard]] bool within() const { return measured >= low && measured <= high; }
};

/// Predicts each cause of causes.def by itself and finds the size that gives the measured step. The likelihood is
/// proportional to how often the cause is met, how usual its size is, and how near the predicted step then is to the
/// measured one, as normal in the logarithm with the prediction's interval; all with "none" sum to 1. Where no cause
/// brings the measured step within its interval, "none" is as near as the nearest cause. Where traces say what the
/// step's parts take, each part is compared. Steps that vary speak for the loader and others' traffic. Throws as
/// predict does for the scenario itself.
StepDiagnosis diagnose_step(const Scenario& scenario, const Reload& reload, const StepEvidence& measured,
                            Fidelity fidelity, const RunTasks& run_tasks = run_tasks_here);

/// The best changes from a state without another training or other hardware; the end of the likeliest cause is one of
/// the changes. All are estimated, `expected` too. `in_state` loads the scenario with that cause. Throws as predict.
std::vector<StepChange> best_changes(const StepDiagnosis& diagnosis, const Result& expected, const Reload& in_state);

/// At most 40 lines, ending in a line end; traces add a section.
std::string to_text(const StepDiagnosis& diagnosis, const std::optional<TraceDiagnosis>& traces = std::nullopt);
std::string to_json(const StepDiagnosis& diagnosis, const std::optional<TraceDiagnosis>& traces = std::nullopt);

}  // namespace foretrain
