// Calibration files that `foretrain calibrate` writes ("foretrain calibration 1"): constants of one machine over a
// base.
#pragma once

#include <string_view>

#include "model/cost/calibration.hpp"
#include "model/hardware/cluster.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

inline constexpr std::string_view calibration_format = "foretrain calibration 1";

/// Reads such a document: the constants of its base, with the fitted ones in their place, their covariance, and what
/// was measured of the GPU. JSON is YAML, so that complaints have a position. Throws ScenarioError.
Calibration read_machine_calibration(const Field& document);

/// Puts the calibration to use on this GPU. The one that was measured gets its measured figures. For any other, what
/// carries over stays: of a chip of the same generation all constants, of another only those of the host; the rest
/// returns to the base. Measured products count on their own GPU alone. Says so in `warnings` and in the sources of the
/// constants. Does nothing for calibrations of no machine.
void adapt_calibration(Calibration& calibration, Gpu& gpu);

/// Where the device is a processor, what a calibration says of hosts beside GPUs is not there: the thread that
/// dispatches computes, and what a core spends on sending and receiving at the card's rate it takes from the backward
/// pass beside it. Says so in the sources of the constants. Does nothing for GPUs.
void adapt_to_processor(Calibration& calibration, const Cluster& cluster);

}  // namespace foretrain
