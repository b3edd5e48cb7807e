// The part "memory": latency and bandwidth of every level of the memory hierarchy.
#include <fmt/format.h>

#include <array>

#include "model/base/units.hpp"
#include "validate/host/calibrate.hpp"
#include "validate/host/pointer_chase.hpp"

namespace foretrain {

namespace {

constexpr std::array<std::string_view, 3> chased_sizes = {"16 KiB", "1 MiB", "64 MiB"};

void measure_latency(const CalibrationSettings& settings, const RowSink& sink) {
  for (const std::string_view size : chased_sizes) {
    const auto bytes = static_cast<std::size_t>(parse_quantity<Bytes>(size).value());
    PointerChase walk(bytes, 64, PageKind::huge);
    walk.chase(static_cast<std::int64_t>(walk.places()));
    const StoppingRule rule{.warm_up = 2, .budget = settings.budget / static_cast<double>(chased_sizes.size())};
    sink(row_of("memory_latency", {{"working_set", std::string(size)}, {"pages", "huge"}},
                sample([&] { return walk.chase(100'000); }, rule), "s"));
  }
}

}  // namespace

std::vector<HostBenchmark> memory_benchmarks() {
  return {{"memory", "memory_latency", "one load after the other, in random order over the lines of a working set",
           Seconds(10.0), Seconds(2.0), 0.25, measure_latency, nullptr}};
}

}  // namespace foretrain
