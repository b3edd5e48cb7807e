#include "model/scenario/hardware/hardware_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/base/text.hpp"
#include "model/base/units.hpp"

namespace foretrain {

namespace {

/// The entry's tree, with the keys that stand beside `preset` put in.
YamlNode resolve(const Field& field) {
  const Field file(hardware_table("storage.yaml"), "");
  return entry_or_changes(file.mapping(keys::storage_file)["storage"].node(), field, "storage");
}

/// "10000 rpm", or the time of one revolution.
Seconds read_rotation(const Field& field) {
  std::string text = field.text();
  if (!text.ends_with("rpm")) return field.quantity<Seconds>();
  text.erase(text.find_last_not_of("rpm ") + 1);
  const double per_minute = field.parse([&](const std::string&) { return parse_number(text); });
  if (!(per_minute > 0.0)) field.fail("a disk that stands still", "10000 rpm, or the time of a revolution as 6 ms");
  return Seconds(60.0 / per_minute);
}

class StorageReader {
 public:
  StorageReader(const MappingReader& keys, FigureLog& log) : keys_(keys), log_(log) {
    if (const auto source = keys.find("source")) source_ = read_source(*source);
  }

  Storage read() {
    Storage result;
    result.kind = keys_.choice_or("kind", StorageKind::flash);
    result.name = keys_.text_or("name", "storage");
    result.read_bandwidth = needed<BytesPerSecond>("read_bandwidth");
    result.write_bandwidth = optional("write_bandwidth", result.read_bandwidth);
    result.queue_depth = keys_.int_or("queue_depth", result.queue_depth, {1, 1'000'000});
    result.read_ahead = keys_.quantity_or("read_ahead", result.read_ahead);
    if (result.kind == StorageKind::disk) {
      result.read_latency = optional("read_latency", Seconds(0.0), Zero::allowed);
      read_mechanics(result);
    } else {
      result.read_latency = needed<Seconds>("read_latency", Zero::allowed);
      note("random_read_iops");
      result.random_read_iops = keys_["random_read_iops"].number(Zero::refused);
      result.random_write_iops = keys_.number_or("random_write_iops", result.random_read_iops, Zero::refused);
      if (keys_.has("random_write_iops")) note("random_write_iops");
      refuse_of_others(result.kind, StorageKind::disk,
                       {"rotation", "seek", "write_seek", "track_to_track", "inner_bandwidth"});
    }
    result.write_latency = optional("write_latency", result.read_latency, Zero::allowed);
    if (result.kind == StorageKind::network) {
      read_network(result);
    } else {
      refuse_of_others(
          result.kind, StorageKind::network,
          {"round_trip", "round_trips_per_open", "stream_bandwidth", "link_bandwidth", "clients", "network"});
    }
    return result;
  }

 private:
  void note(std::string_view key) { source_ ? log_.add(keys_[key], *source_) : log_.add(keys_[key]); }

  template <typename Q>
  Q needed(std::string_view key, Zero zero = Zero::refused) {
    const Q value = keys_[key].template quantity<Q>(zero);
    note(key);
    return value;
  }
  template <typename Q>
  Q optional(std::string_view key, Q fallback, Zero zero = Zero::refused) {
    return keys_.has(key) ? needed<Q>(key, zero) : fallback;
  }

  void refuse_of_others(StorageKind kind, StorageKind other, std::initializer_list<std::string_view> keys) const {
    for (const std::string_view key : keys) {
      if (!keys_.has(key)) continue;
      keys_.fail(key, fmt::format("{} storage has none", name(kind)),
                 fmt::format("kind: {}, or leave the key out", name(other)));
    }
  }

  void read_mechanics(Storage& disk) {
    disk.revolution = read_rotation(keys_["rotation"]);
    disk.seek = needed<Seconds>("seek", Zero::allowed);
    disk.write_seek = optional("write_seek", disk.seek, Zero::allowed);
    disk.track_to_track = optional("track_to_track", Seconds(0.0), Zero::allowed);
    disk.inner_bandwidth = optional("inner_bandwidth", disk.read_bandwidth);
    disk.queue_depth = keys_.int_or("queue_depth", 32, {1, 1'000'000});
    if (disk.track_to_track > std::min(disk.seek, disk.write_seek)) {
      keys_.fail("track_to_track", "a seek to the next track that takes longer than the average one",
                 "less than seek and write_seek");
    }
    if (disk.inner_bandwidth > disk.read_bandwidth) {
      keys_.fail("inner_bandwidth", "an inner zone faster than the outer one", "at most read_bandwidth");
    }
    if (keys_.has("random_read_iops") || keys_.has("random_write_iops")) {
      keys_.fail(keys_.has("random_read_iops") ? "random_read_iops" : "random_write_iops",
                 "a disk's requests per second follow from rotation and seek", "leave the key out");
    }
  }

  void read_network(Storage& server) {
    server.round_trip = needed<Seconds>("round_trip", Zero::allowed);
    server.round_trips_per_open = keys_.number_or("round_trips_per_open", 0.0);
    server.stream_bandwidth = optional("stream_bandwidth", server.stream_bandwidth);
    server.link_bandwidth = optional("link_bandwidth", server.link_bandwidth);
    server.clients = keys_.int_or("clients", 1, {1, 1'000'000});
    server.network = keys_.choice_or("network", Storage::Network::shared);
  }

  const MappingReader& keys_;
  FigureLog& log_;
  std::optional<Source> source_;
};

}  // namespace

Storage read_storage(const Field& field, FigureLog& log) {
  const YamlNode tree = resolve(field);
  const Field resolved(tree, field.path());
  const MappingReader keys = resolved.mapping(keys::storage);
  Storage storage = StorageReader(keys, log).read();
  if (field.is_scalar() && !keys.has("name")) storage.name = field.text();
  return storage;
}

Storage read_storage(const Field& field) {
  const YamlNode nothing = yaml_mapping(field.where());
  FigureLog log("storage", Field(nothing, field.path()));
  Storage storage = read_storage(field, log);
  storage.constants = std::move(log).take();
  return storage;
}

}  // namespace foretrain
