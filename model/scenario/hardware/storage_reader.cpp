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

void check_disk(const MappingReader& keys, const Storage& disk) {
  keys.fail_if(disk.track_to_track > std::min(disk.seek, disk.write_seek), "track_to_track",
               "a seek to the next track that takes longer than the average one", "less than seek and write_seek");
  keys.fail_if(disk.inner_bandwidth > disk.read_bandwidth, "inner_bandwidth", "an inner zone faster than the outer one",
               "at most read_bandwidth");
  keys.refuse({"random_read_iops", "random_write_iops"}, "a disk's requests per second follow from rotation and seek",
              "leave the key out");
}

/// What is not stated is as what it resembles.
void read_kind(const MappingReader& keys, Storage& storage, FigureLog& log, const std::optional<Source>& source) {
  const auto usual = [&](std::string_view key, auto& value, auto other) {
    if (!keys.has(key)) value = other;
  };
  const auto need = [&](std::string_view key) { static_cast<void>(keys[key]); };
  usual("write_bandwidth", storage.write_bandwidth, storage.read_bandwidth);
  log.add(keys, {"read_bandwidth", "write_bandwidth"}, source);
  if (storage.kind == StorageKind::disk) {
    storage.revolution = read_rotation(keys["rotation"]);
    need("seek");
    usual("write_seek", storage.write_seek, storage.seek);
    usual("inner_bandwidth", storage.inner_bandwidth, storage.read_bandwidth);
    usual("queue_depth", storage.queue_depth, 32);
    log.add(keys, {"read_latency", "seek", "write_seek", "track_to_track", "inner_bandwidth"}, source);
    check_disk(keys, storage);
  } else {
    need("read_latency");
    need("random_read_iops");
    usual("random_write_iops", storage.random_write_iops, storage.random_read_iops);
    log.add(keys, {"read_latency", "random_read_iops", "random_write_iops"}, source);
  }
  usual("write_latency", storage.write_latency, storage.read_latency);
  log.add(keys, {"write_latency"}, source);
  if (storage.kind == StorageKind::network) {
    need("round_trip");
    log.add(keys, {"round_trip", "stream_bandwidth", "link_bandwidth"}, source);
  }
}

}  // namespace

Storage read_storage(const Field& field, FigureLog& log) {
  const YamlNode tree = resolve(field);
  const Field resolved(tree, field.path());
  const MappingReader keys = resolved.mapping(keys::storage);
  Storage storage;
  keys.fill(storage);
  storage.name = keys.text_or("name", field.is_scalar() ? field.text() : "storage");
  const auto source = keys.find("source");
  read_kind(keys, storage, log, source ? std::optional(read_source(*source)) : std::nullopt);
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
