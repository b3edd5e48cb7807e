#include "validate/host_calibration/detect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "model/base/number.hpp"
#include "validate/host_calibration/memory_kernels.hpp"
#include "validate/host_calibration/memory_walk.hpp"
#include "validate/host_calibration/processors.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/sampling.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

constexpr std::size_t outside_of_all = std::size_t{256} << 20U;

/// Brings a working set into the last cache (a pass over it, then other data, which displaces it from the second level
/// of that size), touches none of it for a while, and follows pointers in it: half_way() of several whiles. About three
/// seconds.
Seconds residence_in_last_cache(Bytes second_level) {
  constexpr std::int64_t loads = 4096;
  // Every second line: a prefetcher that completes pairs brings none that is asked for later.
  constexpr std::size_t stride = 128;
  const auto size = std::max<std::size_t>(1U << 20U, static_cast<std::size_t>(second_level.value()));
  PointerChase kept(size, stride, true);
  const HostMemory others = host_memory(2 * size, true);
  const auto pass = static_cast<std::int64_t>(kept.places());
  const auto latency_at = [&](double wait) {
    Sampled ages;
    const Sampled samples = sample(
        [&] {
          kept.chase(pass);
          const double start = now();
          memory_kernels().read(others.get(), 2 * size, 2);
          while (now() - start < wait) throw_if_interrupted();
          const double before = now() - start, latency = kept.chase(loads);
          ages.values.push_back(before + latency * number(loads) / 2.0);
          return latency;
        },
        {.warm_up = 1, .least = 9, .most = 9});
    return AgedLoad{Seconds(ages.median()), Seconds(samples.median())};
  };
  std::vector<AgedLoad> aged;
  for (const double wait : {0.0, 1e-3, 2e-3, 4e-3, 6e-3, 9e-3, 13e-3, 20e-3, 30e-3, 45e-3, 70e-3, 100e-3}) {
    aged.push_back(latency_at(wait));
  }
  PointerChase outside(outside_of_all, stride, true);
  const Sampled far = sample([&] { return outside.chase(20'000); }, {.warm_up = 1, .least = 15, .most = 15});
  return half_way(aged, Seconds(far.median()));
}

}  // namespace

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

void measure_threads(DetectedCpu& cpu) {
  const int threads = threads_of_first_core();
  if (threads < 1) return;
  cpu.threads_per_core = threads;
  cpu.measured["cpu.cores"] = fmt::format("two threads that multiply show {} of a core among the processors", threads);
}

void measure_last_cache(DetectedCpu& cpu) {
  const DetectedCache* second = cpu.cache(2);
  DetectedCache* last = cpu.cache(3);
  if (second == nullptr || last == nullptr) return;
  last->residence = residence_in_last_cache(second->size);
  if (last->residence.value() > 0.0) {
    cpu.measured["cpu.hierarchy.caches.L3.residence"] =
        "for how long this cache, which others fill as well, keeps data that nobody asks for";
  }
}

Seconds half_way(const std::vector<AgedLoad>& loads, Seconds outside) {
  if (loads.empty()) return Seconds(0.0);
  const Seconds middle = 0.5 * (loads.front().latency + outside);
  for (std::size_t i = loads.size(); i > 0; --i) {
    const AgedLoad& below = loads[i - 1];
    if (below.latency > middle) continue;
    if (i == loads.size()) return Seconds(0.0);
    const AgedLoad& above = loads[i];
    return below.age + (above.age - below.age) * ((middle - below.latency) / (above.latency - below.latency));
  }
  return loads.front().age;  // not even the youngest is there
}

}  // namespace foretrain
