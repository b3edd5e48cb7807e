#include "validate/cuda/collective/peer_design.hpp"

#include <set>

#include "validate/cuda/collective/ladder.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::uint64_t least_bytes = 4096;
constexpr std::uint64_t most_bytes = 1ULL << 30;

void add_pair(std::vector<PeerPoint>& points, const PeerLink& link, bool access, unsigned factor) {
  const std::vector<std::uint64_t> sizes = size_ladder(least_bytes, most_bytes, factor);
  for (const auto& [from, to] : {std::pair(link.first, link.second), std::pair(link.second, link.first)}) {
    const PeerPoint base{.source = from, .destination = to, .access = access};
    for (const std::uint64_t bytes : {4ULL, 4096ULL}) {
      PeerPoint point = base;
      point.latency = true;
      point.bytes = bytes;
      points.push_back(point);
    }
    for (const std::uint64_t bytes : sizes) {
      PeerPoint point = base;
      point.bytes = bytes;
      points.push_back(point);
    }
  }
  for (const std::uint64_t bytes : sizes) {
    points.push_back({.source = link.first,
                      .destination = link.second,
                      .direction = PeerDirection::both_ways,
                      .access = access,
                      .bytes = bytes});
  }
}

}  // namespace

std::vector<PeerPoint> peer_points(const std::vector<PeerLink>& links, bool quick) {
  constexpr unsigned fine = 4;
  constexpr unsigned coarse = 64;
  std::vector<PeerPoint> points;
  std::vector<PeerLink> others;
  std::set<std::string> known;
  for (const PeerLink& link : links) {
    if (!known.insert(link.kind).second) {
      others.push_back(link);
      continue;
    }
    if (link.access) add_pair(points, link, true, quick ? coarse : fine);
    add_pair(points, link, false, quick ? coarse : fine);
  }
  if (quick) return points;
  for (const PeerLink& link : others) {
    if (link.access) add_pair(points, link, true, fine);
  }
  for (const PeerLink& link : others) add_pair(points, link, false, coarse);
  return points;
}

Record record_of(const PeerPoint& point) {
  const bool both = point.direction == PeerDirection::both_ways;
  const std::string source = std::to_string(point.source);
  const std::string destination = std::to_string(point.destination);
  const std::string bytes = std::to_string(point.bytes);
  const std::string access = point.access ? "on" : "off";
  Record record;
  record.name = std::string(point.latency ? "latency " : "copy ") + source + (both ? "<->" : "->") + destination +
                " bytes=" + bytes + " peer_access=" + access;
  record.parameters = {
      {"source", source},      {"destination", destination},         {"bytes", bytes},
      {"peer_access", access}, {"direction", both ? "both" : "one"}, {"timing", point.latency ? "host" : "stream"}};
  record.unit = "s";
  return record;
}

}  // namespace foretrain::gpu
