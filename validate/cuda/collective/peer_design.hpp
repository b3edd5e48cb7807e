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

/// Copies back to back.
struct PeerPoint {
  int source = 0, destination = 0;
  bool both_ways = false;  ///< both directions at once
  bool access = true;      ///< peer access on; off: the driver copies through host memory
  std::uint64_t bytes = 0;
};

/// Pairs are unordered, each is measured in both directions and in both at once. First one pair per kind of link, with
/// peer access (where it can be) and without; quick: no more than that, in larger steps of size. Then of the
/// other pairs the largest copy each way: whether they are alike.
std::vector<PeerPoint> peer_points(const std::vector<PeerLink>& links, bool quick);

/// Name and parameters. No scenario states a bare copy between two GPUs.
Record record_of(const PeerPoint& point);

}  // namespace foretrain::gpu
