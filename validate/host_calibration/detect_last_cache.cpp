// What this machine has of a last cache that other virtual machines fill as well: how long it keeps data, or else how
// much of it is found.
#include <algorithm>
#include <cstdint>

#include "validate/host_calibration/detect.hpp"
#include "validate/host_calibration/last_cache.hpp"
#include "validate/host_calibration/pointer_chase.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain {

namespace {

// Working sets grow until a pointer chase over them takes more than half-way from the last cache's latency to memory's:
// a machine that is shared gets less of that cache than it is told. Both latencies come from the same chase, at a size
// well inside and at one well outside of what any machine could have.
Bytes own_share_of_last_cache(Bytes second, Bytes last) {
  const StoppingRule rule{.warm_up = 2, .least = 15, .most = 40, .target = 0.02, .budget = Seconds(0.15)};
  const auto fastest = [&](Bytes size) {
    PointerChase walk(static_cast<std::size_t>(size.value()), 64, PageKind::huge);
    walk.chase(static_cast<std::int64_t>(std::min<std::size_t>(walk.places(), 1'000'000)));
    return sample([&] { return walk.chase(60'000); }, rule).lowest();
  };
  const double inside = fastest(second * 2.0);
  const double outside = fastest(std::max(last, Bytes(268435456.0)));
  Bytes share = second * 2.0;
  for (Bytes size = second * 3.0; size <= last; size = size * 1.25) {
    if (fastest(size) > 0.5 * (inside + outside)) return std::min(share, last);
    share = size;
  }
  return last;
}

}  // namespace

void measure_last_cache(DetectedCpu& cpu) {
  const DetectedCache* second = cpu.cache(2);
  DetectedCache* last = cpu.cache(3);
  if (second == nullptr || last == nullptr) return;
  last->residence = residence_in_last_cache(second->size);
  if (last->residence.value() > 0.0) {
    cpu.measured["cpu.hierarchy.caches.L3.residence"] =
        "for how long this cache, which others fill as well, keeps data that nobody asks for";
    return;
  }
  last->size = own_share_of_last_cache(second->size, last->size);
  last->part = true;
  cpu.measured["cpu.hierarchy.caches.L3.size"] =
      "of this cache, which others use as well, the size that a pointer chase finds";
}

}  // namespace foretrain
