// Replays as text: predicted beside measured, and what single messages cost.
#pragma once

#include <string>
#include <vector>

#include "reports/accuracy.hpp"
#include "validate/host_replay/measurements.hpp"

namespace foretrain {

/// A table with one line per run: predicted, measured, spread, error, how busy the cores were.
std::string replay_text(const std::vector<HostMeasurement>& runs);

/// A table with one line per message size: bytes and packets on the wire, counted and by the packet model, and time.
std::string probe_text(const std::vector<ProbeMeasurement>& probes);

/// The runs as comparisons of times.
std::vector<Comparison> comparisons_of(const std::vector<HostMeasurement>& runs);

}  // namespace foretrain
