// How many processors are threads of one core: virtual machines are often told that each is a core.
#include <fmt/format.h>

#include "validate/host_calibration/detect.hpp"
#include "validate/host_calibration/processors.hpp"

namespace foretrain {

void measure_threads(DetectedCpu& cpu) {
  const int threads = threads_of_first_core();
  if (threads < 1) return;
  cpu.threads_per_core = threads;
  cpu.measured["cpu.cores"] = fmt::format("two threads that multiply show {} of a core among the processors", threads);
}

}  // namespace foretrain
