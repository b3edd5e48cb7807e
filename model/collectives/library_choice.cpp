#include "model/collectives/library_choice.hpp"

#include <algorithm>

namespace foretrain {

namespace {

constexpr std::array<ExpectedGpu, 4> gpus = {
    {{7.0, 39.0 / 120.0, 20.0 / 20.0, 16.0, 20.0 / 23.5, 0.0, 0.0},
     {8.0, 87.7 / 240.0, 20.0 / 20.0, 16.0, 20.0 / 19.1, 0.0, 0.0},
     {9.0, 141.0 / 360.0, 36.7 / 30.0, 16.0, 20.0 / 20.8, 0.85, 60.0 / 360.0},
     {10.0, 2 * 141.0 / 720.0, 40.0 / 90.0, 24.0, 40.0 / 34.4, 0.74, 90.0 / 720.0}}};
constexpr double switch_latency = 25.0 / 0.6;  // in steps of LL, as the others

/// NCCL's own estimate of ring times.
class ExpectedTimes {
 public:
  explicit ExpectedTimes(const ExpectedRing& ring)
      : ring_(ring),
        gpu_(expected_of(ring.compute_capability)),
        links_(ring.links / (ring.nvlink ? gpu_.simple : 1.0)) {}

  [[nodiscard]] Seconds by(LibraryProtocolKind kind) const {
    // Half of what LL carries are flags; of LL128's 128 bytes eight are.
    const double ll = ring_.nvlink ? std::min(0.5, gpu_.ll) : 0.5, ll128 = std::min(0.92, gpu_.ll128);
    const ExpectedLatency& latency = expected_latencies[static_cast<std::size_t>(kind)];
    const double step = ring_.nvlink ? latency.nvlink_step : latency.pcie_step;
    const double share = kind == LibraryProtocolKind::ll ? ll : kind == LibraryProtocolKind::ll128 ? ll128 : 1.0;
    return ring_.unit * (latency.base + ring_.steps * step) + links_ / share;
  }

  /// Rings carry 2(n-1) parts of n over each link, switches all of them once.
  [[nodiscard]] Seconds in_switches(int ranks) const {
    const double share = gpu_.switches * std::min(1.0, gpu_.head * ranks);
    return ring_.unit * switch_latency + links_ * (static_cast<double>(ranks) / ring_.steps) / share;
  }

 private:
  const ExpectedRing& ring_;
  const ExpectedGpu& gpu_;
  Seconds links_;
};

}  // namespace

const ExpectedGpu& expected_of(double compute_capability) {
  const auto newer = std::ranges::upper_bound(gpus, compute_capability, {}, &ExpectedGpu::compute_capability);
  return newer == gpus.begin() ? gpus.front() : *(newer - 1);
}

bool expects_simple(const ExpectedRing& ring) {
  using enum LibraryProtocolKind;
  const ExpectedTimes expected(ring);
  return expected.by(simple) < expected.by(ll) && (!ring.nvlink || expected.by(simple) < expected.by(ll128));
}

bool expects_switches(const ExpectedRing& ring, int ranks) {
  using enum LibraryProtocolKind;
  if (expected_of(ring.compute_capability).switches <= 0.0) return false;
  const ExpectedTimes expected(ring);
  return expected.in_switches(ranks) < std::min({expected.by(simple), expected.by(ll), expected.by(ll128)});
}

}  // namespace foretrain
