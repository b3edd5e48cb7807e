// SYNTHETIC measurements: the model's own times under constants that the test chose, with seeded noise and outliers. No
// GPU made them; they test that a fit finds again what went in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/cost/calibration.hpp"
#include "validate/fit/raw.hpp"

namespace foretrain::synthetic {

/// machine.json of a GPU that no catalogue knows: compute capability 8.9, 100 multiprocessors at 2 GHz, `gpus` of them;
/// with `cards` NICs of 200 Gbit/s.
std::string machine_json(int gpus = 1, int cards = 0);

struct Design {
  std::vector<std::string> suites = {"gemm", "streaming", "convolution", "attention", "memory"};
  double noise = 0.02;    ///< standard deviation of ln(time)
  int outlier_every = 0;  ///< every so many points takes three times as long; 0: none
  std::uint64_t seed = 1;
  bool hold_out = true;  ///< every fourth point
  int gpus = 1;
  int nodes = 1;               ///< collectives go over 2 to gpus ranks of one node, and over all of several
  std::string bad_suite = {};  ///< whose times mean nothing: the standard deviation of ln(time) is 1
};

/// Points of the suites, timed by `truth`; "steps" are whole training steps.
RawMeasurements measurements(const Calibration& truth, const Design& design);

/// The same as files.
void write_folder(const RawMeasurements& raw, const std::filesystem::path& folder);

/// A record without a time, as suites state it.
Record record(const std::string& suite, const std::string& name, std::map<std::string, std::string> scenario);

}  // namespace foretrain::synthetic
