// How fast a core is: its clock and its vector units.
#include <fmt/format.h>

#include <algorithm>

#include "validate/host_calibration/detect.hpp"
#include "validate/host_calibration/processors.hpp"

namespace foretrain {

// The best of several looks at several processors, since what else runs on a chip takes from both figures, and comes
// and goes.
void measure_cores(DetectedCpu& cpu) {
  constexpr std::size_t processors = 4;
  constexpr int looks = 10;
  std::vector<int> own = own_processors();
  own.resize(std::min(own.size(), processors));
  double multiply_adds = 0.0;
  for (int look = 0; look < looks; ++look) {
    for (const int processor : own) {
      const BoundTo bound(processor);
      const double clock = core_clock();
      cpu.clock = std::max(cpu.clock, Hertz(clock));
      multiply_adds = std::max(multiply_adds, multiply_adds_per_second() / clock);
    }
  }
  cpu.measured["cpu.clock"] = "a chain of dependent additions, one a cycle";
  if (!(multiply_adds > 0.0)) return;
  // A tenth more than one a cycle proves a second unit; less may be another virtual machine's work on the core's other
  // thread.
  const int units = multiply_adds > 1.1 ? 2 : 1;
  std::string& how = cpu.measured["cpu.fp32_rate"];
  cpu.multiply_adds = how.empty() ? units : std::max(cpu.multiply_adds, units);
  how =
      fmt::format("a loop in registers does {} multiply-adds of {} bytes a cycle", cpu.multiply_adds, cpu.vector_bytes);
}

}  // namespace foretrain
