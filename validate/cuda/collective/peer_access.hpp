// Direct access of GPUs to each other's memory.
#pragma once

#include <vector>

#include "validate/cuda/collective/peer_design.hpp"
#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

/// Every pair of visible GPUs, with what CUDA says of the link: whether peer access and native atomics (NVLink has
/// them, PCIe has not) are possible both ways, and its rank among the links.
std::vector<PeerLink> peer_links();

/// Peer access between two GPUs, both ways, while it lives. What was on before stays on. Throws GpuError
/// (Fault::unsupported where the GPUs cannot).
class PeerAccess {
 public:
  PeerAccess(int first, int second);
  ~PeerAccess();
  PeerAccess(const PeerAccess&) = delete;
  PeerAccess& operator=(const PeerAccess&) = delete;

 private:
  struct Way {
    int from = 0, to = 0;
    bool ours = false;
  };
  Way ways_[2];
};

}  // namespace foretrain::gpu
