// The part "disk": sequential and random reads through a real file system.
#include "validate/host/calibrate.hpp"

namespace foretrain {

std::vector<HostBenchmark> disk_benchmarks() { return {}; }

}  // namespace foretrain
