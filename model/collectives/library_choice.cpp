#include "model/collectives/library_choice.hpp"

#include <algorithm>

namespace foretrain {

namespace {

constexpr BytesPerSecond gbps(double value) { return BytesPerSecond(value * 1e9); }

constexpr std::array<ExpectedGpu, 4> gpus = {{{7.0, gbps(39.0), gbps(6 * 20.0), 16.0, 20.0 / 23.5},
                                              {8.0, gbps(87.7), gbps(12 * 20.0), 16.0, 20.0 / 19.1},
                                              {9.0, gbps(141.0), gbps(12 * 36.7), 16.0, 20.0 / 20.8},
                                              {10.0, gbps(2 * 141.0), gbps(8 * 40.0), 24.0, 40.0 / 34.4}}};

/// Half of what LL carries are flags; of LL128's 128 bytes eight are.
Seconds bytes_time(LibraryProtocolKind kind, const ExpectedRing& ring) {
  const ExpectedGpu& gpu = expected_of(ring.compute_capability);
  const Seconds links = ring.links / (ring.nvlink ? gpu.simple : 1.0);
  if (kind == LibraryProtocolKind::ll) return std::max(links / 0.5, ring.hop / gpu.ll);
  if (kind == LibraryProtocolKind::ll128) return std::max(links / 0.92, ring.hop / gpu.ll128);
  return links;
}

}  // namespace

const ExpectedGpu& expected_of(double compute_capability) {
  const auto newer = std::ranges::upper_bound(gpus, compute_capability, {}, &ExpectedGpu::compute_capability);
  return newer == gpus.begin() ? gpus.front() : *(newer - 1);
}

bool expects_simple(const ExpectedRing& ring) {
  using enum LibraryProtocolKind;
  const auto time = [&](LibraryProtocolKind kind) {
    const ExpectedLatency& latency = expected_latencies[static_cast<std::size_t>(kind)];
    const double step = ring.nvlink ? latency.nvlink_step_us : latency.pcie_step_us;
    return Seconds((latency.base_us + ring.steps * step) * 1e-6) + bytes_time(kind, ring);
  };
  return time(simple) < time(ll) && (!ring.nvlink || time(simple) < time(ll128));
}

}  // namespace foretrain
