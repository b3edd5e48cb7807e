#include "validate/host_calibration/last_cache.hpp"

#include <algorithm>
#include <cstdint>

#include "model/base/number.hpp"
#include "validate/host_calibration/memory_kernels.hpp"
#include "validate/host_calibration/pointer_chase.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/sampling.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

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

Seconds residence_in_last_cache(Bytes second_level) {
  constexpr std::int64_t loads = 4096;
  // Every second line: a prefetcher that completes pairs brings none that is asked for later.
  constexpr std::size_t stride = 128;
  const auto size = std::max<std::size_t>(1U << 20U, static_cast<std::size_t>(second_level.value()));
  PointerChase kept(size, stride, PageKind::huge);
  const HostMemory others(2 * size, PageKind::huge);
  const auto pass = static_cast<std::int64_t>(kept.places());
  const auto latency_at = [&](double wait) {
    Sampled ages;
    const Sampled samples = sample(
        [&] {
          kept.chase(pass);
          const double start = now();
          keep(memory_kernels().read(others.data(), others.size(), 2));
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
  PointerChase outside(std::size_t{256} << 20U, stride, PageKind::huge);
  const Sampled far = sample([&] { return outside.chase(20'000); }, {.warm_up = 1, .least = 15, .most = 15});
  return half_way(aged, Seconds(far.median()));
}

}  // namespace foretrain
