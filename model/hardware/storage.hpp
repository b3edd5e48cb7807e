// Storage as values: disks, flash, and file systems behind a network. What a request costs is in
// model/cost/storage.hpp.
#pragma once

#include <string>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/quantity.hpp"

namespace foretrain {

/// disk: an arm that seeks and platters that turn. flash: SATA or NVMe. network: a server that other machines use as
/// well (NFS, object stores).
enum class StorageKind { flash, disk, network };

struct Storage {
  std::string name;
  StorageKind kind = StorageKind::flash;
  BytesPerSecond read_bandwidth;   ///< of large sequential requests; disk: outer zone; network: the server's
  BytesPerSecond write_bandwidth;  ///< the same for writes
  double random_read_iops = 0.0;   ///< small requests per second, many at once; a disk's follow from its mechanics
  double random_write_iops = 0.0;
  Seconds read_latency;    ///< of one small uncontended request; disk: the controller's overhead
  Seconds write_latency;   ///< the same for writes
  int queue_depth = 1024;  ///< requests that it takes at once: 32 with SATA, thousands with NVMe
  /// Rate of one request at a time, where that is less than `read_bandwidth` (a connection to a server).
  BytesPerSecond stream_bandwidth = BytesPerSecond::infinity();
  /// Read-ahead of the kernel for a process that reads sequentially.
  Bytes read_ahead = Bytes(131072.0);

  // Disks.
  Seconds revolution;  ///< of the platters: 6 ms at 10,000 rpm
  Seconds seek;        ///< average over all pairs of tracks, reads
  Seconds write_seek;
  Seconds track_to_track;
  BytesPerSecond inner_bandwidth;  ///< of the innermost zone

  // Network file systems.
  Seconds round_trip;
  double round_trips_per_open = 0.0;                           ///< finding, opening and closing one file
  BytesPerSecond link_bandwidth = BytesPerSecond::infinity();  ///< of one machine's way to the server
  int clients = 1;                                             ///< machines that use it at the same time
  /// Whether machines reach it by the cards that training uses, or by others.
  enum class Network { shared, separate } network = Network::shared;

  /// Values with their sources, unless it belongs to a node, whose constants hold them.
  std::vector<Constant> constants;

  [[nodiscard]] bool exists() const { return read_bandwidth.value() > 0.0; }
  bool operator==(const Storage&) const = default;
};

}  // namespace foretrain
