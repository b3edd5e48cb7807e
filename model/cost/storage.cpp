#include "model/cost/storage.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// E[√(gap)] between neighbours of n + 1 uniform places, relative to that between two: Γ(n+2) / Γ(n+5/2), normalised.
double root_of_way(double queued) {
  const double n = std::max(queued, 1.0);
  const double at_one = std::lgamma(3.0) - std::lgamma(3.5);
  return std::exp(std::lgamma(n + 2.0) - std::lgamma(n + 2.5) - at_one);
}

Seconds latency_of(const Storage& storage, bool write) { return write ? storage.write_latency : storage.read_latency; }

BytesPerSecond bandwidth_of(const Storage& storage, bool write) {
  return write ? storage.write_bandwidth : storage.read_bandwidth;
}

/// The block for which data sheets state requests per second.
constexpr Bytes rated_block(4096.0);

struct Parts {
  Seconds wait, service;
  DiskBound limit = DiskBound::bandwidth;  ///< bound of the service time
};

Parts disk_parts(const Storage& disk, const DiskPattern& pattern, double queued) {
  const Seconds transfer = pattern.block / zone_bandwidth(disk, pattern.zone, pattern.write);
  if (pattern.order == AccessOrder::random) {
    const Seconds place = latency_of(disk, pattern.write) + positioning_time(disk, queued, pattern.write);
    return {Seconds(0.0), place + transfer, place > transfer ? DiskBound::positioning : DiskBound::bandwidth};
  }
  if (pattern.streams <= 1.0) return {Seconds(0.0), transfer, DiskBound::bandwidth};
  // Every stream's window is somewhere else.
  const Seconds place = positioning_time(disk, pattern.streams, pattern.write) * (pattern.block / disk.read_ahead);
  return {Seconds(0.0), place + transfer, place > transfer ? DiskBound::positioning : DiskBound::bandwidth};
}

Parts server_parts(const Storage& storage, const DiskPattern& pattern) {
  const bool network = storage.kind == StorageKind::network;
  const double sharers = network ? storage.clients : 1.0;
  const double iops = pattern.write ? storage.random_write_iops : storage.random_read_iops;
  const BytesPerSecond bandwidth = bandwidth_of(storage, pattern.write);
  const Seconds carry = std::max(pattern.block * sharers / bandwidth, pattern.block / storage.link_bandwidth);
  const Seconds latency = latency_of(storage, pattern.write) + storage.round_trip;
  const Seconds slower = std::max(pattern.block / storage.stream_bandwidth - carry, Seconds(0.0));
  if (pattern.order == AccessOrder::sequential && !pattern.direct) {
    // Small requests are answered from what was read ahead: the device sees windows, two of them in flight.
    const double windows = pattern.block / storage.read_ahead;
    const Seconds window = carry / windows;
    const Seconds alone = std::max(window, (latency + window) / 2.0);
    // Windows are cut into requests that move at the same time, except through a connection.
    const Seconds waits = (alone - window) * windows;
    return {network ? std::max(waits, slower) : waits, carry, DiskBound::bandwidth};
  }
  // Handling a request and carrying its data follow each other; IOPS are stated for blocks of 4 KiB.
  const Seconds handling = std::max(Seconds(sharers / iops) - rated_block * sharers / bandwidth, Seconds(0.0));
  const Seconds service = std::max(handling + carry, Seconds(sharers / iops));
  return {latency + slower, service,
          service < 2.0 * Seconds(sharers / iops) ? DiskBound::requests : DiskBound::bandwidth};
}

}  // namespace

std::string_view name(DiskBound bound) {
  // In the order of the enumeration.
  constexpr std::array<std::string_view, 4> names = {"latency", "requests per second", "bandwidth", "positioning"};
  return names[static_cast<std::size_t>(bound)];
}

Seconds positioning_time(const Storage& disk, double queued, bool write) {
  const Seconds average = write ? disk.write_seek : disk.seek;
  return disk.track_to_track + (average - disk.track_to_track) * root_of_way(queued) + disk.revolution / 2.0;
}

BytesPerSecond zone_bandwidth(const Storage& disk, double zone, bool write) {
  const BytesPerSecond outer = bandwidth_of(disk, write);
  return outer - (outer - disk.inner_bandwidth * (outer / disk.read_bandwidth)) * zone;
}

DiskCost disk_cost(const Storage& storage, const DiskPattern& pattern) {
  const double depth = std::min(pattern.queue_depth * pattern.streams, number(storage.queue_depth));
  const Parts parts =
      storage.kind == StorageKind::disk ? disk_parts(storage, pattern, depth) : server_parts(storage, pattern);
  DiskCost cost;
  cost.wait = parts.wait;
  cost.service = parts.service;
  const Seconds alone = parts.wait + parts.service;
  const bool busy = depth * parts.service >= alone;
  cost.requests_per_second = busy ? 1.0 / parts.service.value() : depth / alone.value();
  cost.bandwidth = pattern.block * cost.requests_per_second / Seconds(1.0);
  cost.request = Seconds(pattern.queue_depth * pattern.streams / cost.requests_per_second);
  cost.bound = busy || parts.limit == DiskBound::positioning ? parts.limit : DiskBound::latency;
  return cost;
}

double page_cache_share(Bytes cached, Bytes whole, bool shuffled) {
  if (cached >= whole) return 1.0;
  if (!shuffled || !(cached > Bytes(0.0))) return 0.0;
  const double c = cached / whole;
  return c + (1.0 - c) * std::log1p(-c);
}

}  // namespace foretrain
