// Replays as text and pictures: predicted beside measured, and what single messages cost.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/figure/plot.hpp"
#include "reports/measured/accuracy.hpp"
#include "validate/host_replay/measurements.hpp"

namespace foretrain {

/// A table with one line per run: predicted, measured, spread, error, how busy the cores were.
std::string replay_text(const std::vector<HostMeasurement>& runs);

/// The runs as comparisons of times.
std::vector<Comparison> comparisons_of(const std::vector<HostMeasurement>& runs);

/// The table `text` with the columns measured.time (of steps measured.step_time), replay.spread, replay.cores_busy and
/// source filled in for the cases that `runs` name (added where they are missing); other cases keep what they say.
/// Throws ScenarioError as parse_csv.
std::string measured_table(std::string_view text, const std::string& file, const std::vector<HostMeasurement>& runs,
                           const HostMachine& machine);

/// A step's tasks as they were predicted and as they ran, one above the other, on streams whose names contain
/// `streams`. Throws UsageError where the run's tasks were not kept, or none is on such a stream.
TimelineFigure host_timeline(const HostMeasurement& run, const std::string& streams);

}  // namespace foretrain
