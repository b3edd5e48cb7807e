// NCCL's own model of itself, by which it takes Simple inside a node long before that is the fastest protocol. Source:
// NCCL 2.29, src/graph/tuning.cc, ncclTopoTuneModel and ncclTopoGetAlgoTime, constants of one node.
#pragma once

#include <array>
#include <cstddef>

#include "model/base/quantity.hpp"

namespace foretrain {

/// LL has a flag beside every word, LL128 one per 128 bytes, Simple synchronises once per chunk.
enum class LibraryProtocolKind : std::size_t { ll, ll128, simple };

/// NCCL's expected latencies of a protocol's rings, in its steps of LL over NVLink (`tuning_step_us`).
struct ExpectedLatency {
  double base, nvlink_step, pcie_step;
};
constexpr std::array<ExpectedLatency, 3> expected_latencies = {
    {{6.6 / 0.6, 0.6 / 0.6, 1.0 / 0.6}, {14.0 / 0.6, 1.9 / 0.6, 2.5 / 0.6}, {8.4 / 0.6, 3.4 / 0.6, 5.7 / 0.6}}};

/// NCCL's expectations of a GPU inside a node, by compute capability: shares of the bandwidth that its search finds on
/// DGX machines, 6 channels of 20 GB/s, 12 of 20, 12 of 30 and 8 of 90.
struct ExpectedGpu {
  double compute_capability;
  double ll;        ///< llMaxBws
  double ll128;     ///< perChMaxRingLL128Bws
  double channels;  ///< of its kernels, over NVLink
  double simple;    ///< that bandwidth over what Simple reaches (links.yaml)
  double switches;  ///< share of that bandwidth for reductions in switches (nvlsEfficiency); 0: none
  /// The most of that bandwidth that its search gives each rank's channel through them: 60 of 360, 90 of 720 GB/s
  /// (sm90SpeedArrayIntra, sm100SpeedArrayIntra, src/graph/search.cc)
  double head;
};
/// The last one that is not newer than the GPU; GPUs older than all are like the first.
const ExpectedGpu& expected_of(double compute_capability);

/// A ring inside a node as NCCL sees it.
struct ExpectedRing {
  int steps = 0;
  Seconds links;  ///< time of the links under Simple
  bool nvlink = false;
  double compute_capability = 0.0;
  Seconds unit;  ///< in which latencies are counted
};
/// LL and LL128 are no faster, by that model.
bool expects_simple(const ExpectedRing& ring);
/// The switches of so many ranks carry an all-reduce out faster than any ring, by that model: 25 us whatever the ranks,
/// and the message once.
bool expects_switches(const ExpectedRing& ring, int ranks);

}  // namespace foretrain
