// Why a prediction is what it is: bottleneck, sensitivity to each resource, and single changes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/graph/timeline.hpp"
#include "model/result.hpp"
#include "reports/explain/what_if.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

struct Sensitivity {
  std::string resource;
  Seconds faster, slower;  ///< time with the resource `resource_scale` faster and slower
  double share = 0.0;      ///< of the time that goes with it: -d ln(time) / d ln(speed), from the two
};

/// One question on the way to the bottleneck.
struct Finding {
  std::string question;
  double share = 0.0;  ///< of `of`
  double limit = 0.0;  ///< above which the answer is yes
  const char* of = "step";
  [[nodiscard]] bool yes() const { return share > limit; }
};

/// Time of one kind of work or waiting.
struct PathPart {
  std::string name;  ///< "compute", "gradient all-reduce", "waiting"
  Seconds time;
};

/// The chain of a step: what its busiest rank does, and where its kernels rest, what it waits for, as the breakdown and
/// the communication table say it. Longest part first; the parts add up to the step.
std::vector<PathPart> chain_of_step(const TrainResult& train);

/// The chain of other graphs, from the last task back. Each began when the last of those that it waited for had ended,
/// be it before it on its resource or one that it depends on. The parts add up to the time from the first task's start
/// to the last one's end. Time in which no task of the timeline ran is "waiting".
std::vector<PathPart> critical_path(const std::vector<TimelineEntry>& timeline);

struct Explanation {
  Result result;
  /// The estimate that what-ifs are compared with, if they are estimates and the result is none.
  std::optional<Result> estimate;
  std::vector<Finding> path;  ///< training only; the first "yes" ends it
  std::string bottleneck, advice;
  std::vector<Sensitivity> sensitivities;  ///< greatest share first
  std::vector<WhatIf> remedies;            ///< greatest gain first, then what cannot be
  std::vector<PathPart> critical_path;     ///< longest first; needs the result's timeline
  /// Of steps that differ at random: by the scenario's own jitter, or by usual_jitter().
  std::optional<TrainResult::Spread> spread;

  [[nodiscard]] const Result& unchanged() const { return estimate ? *estimate : result; }
};

/// `scaled` as scaled_resources() gives them, `changed` as remedies(), both predicted; `estimate` where these two are
/// estimates.
Explanation explain(const Scenario& scenario, Result result, const std::vector<WhatIf>& scaled,
                    std::vector<WhatIf> changed, std::optional<Result> estimate = {});

/// Takes the spread of step times from a prediction by the fidelity of the what-ifs.
void set_spread(Explanation& explanation, const Result& with_jitter);

/// Ending in a line end.
std::string to_text(const Explanation& explanation);
std::string to_json(const Explanation& explanation);
/// Sensitivities as a tornado: what the time changes by when each resource is faster or slower.
Figure to_figure(const Explanation& explanation);

}  // namespace foretrain
