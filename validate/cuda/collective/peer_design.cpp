#include "validate/cuda/collective/peer_design.hpp"

#include <set>

#include "validate/cuda/collective/ladder.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::uint64_t least_bytes = 4096;
constexpr std::uint64_t most_bytes = 1ULL << 30;

/// Each way, and both at once.
void add_pair(std::vector<PeerPoint>& points, const PeerLink& link, bool access, unsigned factor) {
  for (const std::uint64_t bytes : size_ladder(least_bytes, most_bytes, factor)) {
    points.push_back({link.first, link.second, false, access, bytes});
    points.push_back({link.second, link.first, false, access, bytes});
    points.push_back({link.first, link.second, true, access, bytes});
  }
}

}  // namespace

std::vector<PeerPoint> peer_points(const std::vector<PeerLink>& links, bool quick) {
  constexpr unsigned fine = 4;
  constexpr unsigned coarse = 64;
  std::vector<PeerPoint> points;
  std::set<std::string> known;
  for (const PeerLink& link : links) {
    if (!known.insert(link.kind).second) continue;
    if (link.access) add_pair(points, link, true, quick ? coarse : fine);
    add_pair(points, link, false, quick ? coarse : fine);
  }
  known.clear();
  for (const PeerLink& link : links) {
    if (known.insert(link.kind).second || quick) continue;
    points.push_back({link.first, link.second, false, link.access, most_bytes});
    points.push_back({link.second, link.first, false, link.access, most_bytes});
  }
  return points;
}

Record record_of(const PeerPoint& point) {
  const std::string source = std::to_string(point.source);
  const std::string destination = std::to_string(point.destination);
  const std::string bytes = std::to_string(point.bytes);
  const std::string access = point.access ? "on" : "off";
  Record record;
  record.name =
      "copy " + source + (point.both_ways ? "<->" : "->") + destination + " bytes=" + bytes + " peer_access=" + access;
  record.parameters = {{"source", source},      {"destination", destination},
                       {"bytes", bytes},        {"direction", point.both_ways ? "both" : "one"},
                       {"peer_access", access}, {"timing", "stream"}};
  record.unit = "s";
  return record;
}

}  // namespace foretrain::gpu
