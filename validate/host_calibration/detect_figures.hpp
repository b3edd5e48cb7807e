// Measured properties of this machine that the operating system does not report, or reports wrongly in a virtual
// machine. Each corrects the description of the processor and says how it knows.
#pragma once

#include <vector>

#include "validate/host_calibration/detect.hpp"

namespace foretrain {

/// Measures the speed of a core: its clock and its vector units.
void measure_cores(DetectedCpu& cpu);
/// Measures the number of processors per core: virtual machines are often told that each is a core.
void measure_threads(DetectedCpu& cpu);
/// For how long a last cache that other virtual machines fill as well keeps data.
void measure_last_cache(DetectedCpu& cpu);

/// A load's time from data that no load had asked for during `age`.
struct AgedLoad {
  Seconds age, latency;
};

/// The age at which loads take half-way from the youngest ones' time to `outside`, which is what a load from memory
/// takes: between the last age that is still below and the next one. Zero where even the oldest is below: no other
/// machine fills the cache. `loads` from young to old.
Seconds half_way(const std::vector<AgedLoad>& loads, Seconds outside);

}  // namespace foretrain
