// The part "loader": data loading by worker processes.
#include "validate/host/calibrate.hpp"

namespace foretrain {

std::vector<HostBenchmark> loader_benchmarks() { return {}; }

}  // namespace foretrain
