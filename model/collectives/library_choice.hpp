// NCCL's own model of itself, by which it takes Simple inside a node long before that is the fastest protocol. Source:
// NCCL 2.29, src/graph/tuning.cc, ncclTopoTuneModel and ncclTopoGetAlgoTime, constants of one node.
#pragma once

#include <array>
#include <cstddef>

#include "model/base/quantity.hpp"

namespace foretrain {

/// LL has a flag beside every word, LL128 one per 128 bytes, Simple synchronises once per chunk.
enum class LibraryProtocolKind : std::size_t { ll, ll128, simple };

/// What NCCL expects of a protocol's rings.
struct ExpectedLatency {
  double base_us, nvlink_step_us, pcie_step_us;
};
inline constexpr std::array<ExpectedLatency, 3> expected_latencies = {
    {{6.6, 0.6, 1.0}, {14.0, 1.9, 2.5}, {8.4, 3.4, 5.7}}};

/// What NCCL expects of a GPU inside a node, by compute capability.
struct ExpectedGpu {
  double compute_capability;
  BytesPerSecond ll;     ///< llMaxBws
  BytesPerSecond ll128;  ///< perChMaxRingLL128Bws times the channels of its search on DGX machines: 6, 12, 12, 8
  double channels;       ///< of its kernels, over NVLink
  double simple;         ///< NCCL's figure for an NVLink (src/graph/topo.h) over what Simple reaches (links.yaml)
};
/// The last one that is not newer than the GPU; GPUs older than all are like the first.
const ExpectedGpu& expected_of(double compute_capability);

/// A ring inside a node as NCCL sees it.
struct ExpectedRing {
  int steps = 0;
  Bytes hop;      ///< what every hop carries
  Seconds links;  ///< what the links need for that under Simple
  bool nvlink = false;
  double compute_capability = 0.0;
};
/// LL and LL128 are no faster, by that model.
bool expects_simple(const ExpectedRing& ring);

}  // namespace foretrain
