// The part "compute": matrix products on the processor's cores.
#include "validate/host/calibrate.hpp"

namespace foretrain {

std::vector<HostBenchmark> compute_benchmarks() { return {}; }

}  // namespace foretrain
