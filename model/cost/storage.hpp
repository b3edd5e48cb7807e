// The cost of requests to storage: one at a time, and many at once.
#pragma once

#include <string_view>

#include "model/base/quantity.hpp"
#include "model/hardware/storage.hpp"

namespace foretrain {

enum class AccessOrder { sequential, random };

/// Requests of one size, `queue_depth` of them in flight all the time (threads that read and wait count one each).
struct DiskPattern {
  AccessOrder order = AccessOrder::random;
  bool write = false;
  bool direct = false;  ///< past the page cache (O_DIRECT): nothing is read ahead
  Bytes block = Bytes(4096.0);
  double queue_depth = 1.0;
  /// Sequential readers of different places, each with its own read-ahead: a disk's arm goes from one to the next.
  double streams = 1.0;
  double zone = 0.5;  ///< place on a disk: 0 the outermost track, 1 the innermost
};

/// The bound of requests.
enum class DiskBound { latency, requests, bandwidth, positioning };
std::string_view name(DiskBound bound);

struct DiskCost {
  Seconds wait;     ///< part of a request during which the device can serve others
  Seconds service;  ///< part of a request during which it cannot: the inverse of the most requests per second
  Seconds request;  ///< from its start to its end, with as many others as the pattern says
  double requests_per_second = 0.0;
  BytesPerSecond bandwidth;
  DiskBound bound = DiskBound::latency;
};

/// Little's law up to the device's limit: requests per second = min(queue depth / (wait + service), 1 / service), with
///   flash:   wait = latency + what one request is slower than many,
///            service = 1 / IOPS for 4 KiB, and (block - 4 KiB) / bandwidth for more
///   disk:    wait = 0,     service = overhead + positioning + block / bandwidth(zone)
///   network: wait = latency + round trip + what one connection is slower than the server,
///            service as flash, shared by the clients, or block / link
/// Sequential requests of flash and network are merged by read-ahead, unless they are direct. They wait as requests of
/// two read-ahead windows do.
/// Sequential reading on a disk needs no positioning, unless several streams take turns: then once per window.
DiskCost disk_cost(const Storage& storage, const DiskPattern& pattern);

/// Time in which a disk's arm and platter reach a random place, with `queued` requests to choose from. The elevator
/// visits them in order, so that the mean of the square root of the way to the next is that of neighbours among
/// queued + 1 random places. Seek time grows with the root of the way (Ruemmler and Wilkes, "An introduction to disk
/// drive modeling", 1994), from track-to-track to the average; half a revolution passes on average.
Seconds positioning_time(const Storage& disk, double queued, bool write = false);

/// Bandwidth of a zone: linear in the radius, which is linear in the track.
BytesPerSecond zone_bandwidth(const Storage& disk, double zone, bool write = false);

/// Share of reads that the page cache answers from the second epoch on, with room for `cached` of `whole` bytes and the
/// least recently used page evicted first. Read in the same order every time, a set that does not fit is never there.
/// Shuffled anew for every epoch, it is c + (1 - c) ln(1 - c) for c = cached / whole. A sample read at the share u of
/// one epoch and v of the next has met all but u (1 - v) of the others in between.
double page_cache_share(Bytes cached, Bytes whole, bool shuffled);

}  // namespace foretrain
