#include "model/collectives/library_choice.hpp"

#include <algorithm>

namespace foretrain {

namespace {

constexpr std::array<ExpectedGpu, 4> gpus = {{{7.0, 39.0 / 120.0, 20.0 / 20.0, 16.0, 20.0 / 23.5},
                                              {8.0, 87.7 / 240.0, 20.0 / 20.0, 16.0, 20.0 / 19.1},
                                              {9.0, 141.0 / 360.0, 36.7 / 30.0, 16.0, 20.0 / 20.8},
                                              {10.0, 2 * 141.0 / 720.0, 40.0 / 90.0, 24.0, 40.0 / 34.4}}};

}  // namespace

const ExpectedGpu& expected_of(double compute_capability) {
  const auto newer = std::ranges::upper_bound(gpus, compute_capability, {}, &ExpectedGpu::compute_capability);
  return newer == gpus.begin() ? gpus.front() : *(newer - 1);
}

bool expects_simple(const ExpectedRing& ring) {
  using enum LibraryProtocolKind;
  const ExpectedGpu& gpu = expected_of(ring.compute_capability);
  const Seconds links = ring.links / (ring.nvlink ? gpu.simple : 1.0);
  const auto time = [&](LibraryProtocolKind kind, double share) {
    const ExpectedLatency& latency = expected_latencies[static_cast<std::size_t>(kind)];
    const double step = ring.nvlink ? latency.nvlink_step : latency.pcie_step;
    return ring.unit * (latency.base + ring.steps * step) + links / share;
  };
  // Half of what LL carries are flags; of LL128's 128 bytes eight are.
  const Seconds expected = time(simple, 1.0);
  return expected < time(ll, ring.nvlink ? std::min(0.5, gpu.ll) : 0.5) &&
         (!ring.nvlink || expected < time(ll128, std::min(0.92, gpu.ll128)));
}

}  // namespace foretrain
