// Which copies between GPUs are measured, in which order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validate/measure/record.hpp"

namespace foretrain::gpu {

/// Two GPUs and the class of the link between them: pairs of one class are expected to behave alike.
struct PeerLink {
  int first = 0, second = 0;
  std::string kind;
  bool access = false;  ///< whether each can reach the other's memory directly
};

enum class PeerDirection { one_way, both_ways };

struct PeerPoint {
  int source = 0, destination = 0;
  PeerDirection direction = PeerDirection::one_way;
  bool access = true;    ///< peer access on; off: the driver copies through host memory
  bool latency = false;  ///< one copy at a time, waited for on the host; else back to back
  std::uint64_t bytes = 0;
};

/// Pairs are unordered, each is measured in both directions and in both at once, with peer access (where it can be) and
/// without. First one pair per kind of link with everything; quick: no more than that, in larger steps of size. Then
/// the other pairs with access, then without it, where the ladder is coarser.
std::vector<PeerPoint> peer_points(const std::vector<PeerLink>& links, bool quick);

/// Name and parameters. No scenario states a bare copy between two GPUs.
Record record_of(const PeerPoint& point);

}  // namespace foretrain::gpu
