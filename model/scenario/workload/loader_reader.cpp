// Where samples come from and what is saved: loaders, requests to storage, checkpoints.
#include "model/scenario/workload/workload_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "model/base/units.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"

namespace foretrain {

namespace {

/// What only several keys together show to be wrong.
void check_loader(const DataLoader& loader, const MappingReader& keys, const Storage& usual) {
  const std::initializer_list<std::string_view> stages = {"read", "decode", "preprocess", "augment", "collate"};
  const bool parts = std::ranges::any_of(stages, [&](std::string_view key) { return keys.has(key); });
  if (keys.has("per_sample")) {
    constexpr std::string_view right = "the parts, or per_sample alone";
    keys.refuse(stages, "a part of per_sample, which is stated too", right);
    keys.refuse({"dataset"}, "per_sample contains reading", right);
  } else if (!parts && !loader.dataset && !keys.has("transfer")) {
    keys.fail("per_sample", "nothing says what loading costs",
              "per_sample, or read, decode, preprocess, augment, collate, transfer, or a dataset");
  }
  if (loader.dataset) {
    keys.refuse({"read"}, "the dataset's storage says how long reading takes", "read, or a dataset");
  }
  keys.fail_if(loader.dataset && !loader.storage && !usual.exists(), "dataset", "the node has no storage",
               "storage: a name of scenarios/hardware/storage.yaml, or a mapping");
  keys.fail_if(loader.keeps_decoded && !(loader.decoded > Bytes(0.0)), "keep_decoded",
               "nothing says how large a decoded sample is", "decoded, for example decoded: 602 KB");
  keys.fail_if(loader.decodes_on_device != keys.has("device_decode"),
               loader.decodes_on_device ? "decode_on" : "device_decode",
               loader.decodes_on_device ? "nothing says how long the device takes" : "decoding is done by the workers",
               loader.decodes_on_device ? "device_decode, its time for a sample (or batch)" : "decode_on: gpu");
}

}  // namespace

DataLoader read_loader(const Field& field, const Storage& usual) {
  const MappingReader keys = field.mapping(keys::loader);
  DataLoader loader;
  keys.fill(loader);
  keys.fill(loader.stages);
  if (const auto dataset = keys.find("dataset")) dataset->mapping(keys::dataset).fill(loader.dataset.emplace());
  if (const auto storage = keys.find("storage")) loader.storage = read_storage(*storage);
  check_loader(loader, keys, usual);
  return loader;
}

LoaderWorkload read_loader_workload(const Field& field, const Storage& usual) {
  LoaderWorkload workload;
  YamlNode loader = field.node();
  loader.erase("batch");
  workload.loader = read_loader(Field(loader, field.path()), usual);
  const Field batch = field.at("batch", "the samples of one batch");
  workload.batch = static_cast<double>(batch.integer({1, 1'000'000'000}));
  return workload;
}

StorageWorkload read_storage_workload(const Field& field, bool write, const Storage& usual) {
  const MappingReader keys = field.mapping(keys::disk_requests);
  StorageWorkload workload;
  workload.storage = usual;
  if (const auto storage = keys.find("storage")) workload.storage = read_storage(*storage);
  field.fail_if(!workload.storage.exists(), "the node has no storage",
                "storage: a name of scenarios/hardware/storage.yaml, or a mapping");
  DiskPattern& pattern = workload.pattern;
  pattern.write = write;
  pattern.direct = true;
  keys.fill(pattern);
  if (pattern.zone > 1.0) keys.fail("zone", fmt::format("{} of the way in", pattern.zone), "from 0 (outermost) to 1");
  workload.size = keys.quantity_or("size", pattern.block);
  return workload;
}

Checkpoint read_checkpoint(const Field& field, const Storage& of_node) {
  const MappingReader keys = field.mapping(keys::checkpoint);
  Checkpoint checkpoint;
  const Field every = keys["every"];
  checkpoint.best_interval = every.is_scalar() && every.text() == "auto";
  if (!checkpoint.best_interval) checkpoint.every = static_cast<int>(every.integer({1, 1'000'000'000}));
  keys.fill(checkpoint);
  if (checkpoint.mode == Checkpoint::Mode::in_memory) return checkpoint;
  const auto storage = keys.find("storage");
  if (!storage) {
    // A machine's own disks fail with it: what nobody states has to outlive a machine.
    const YamlNode usual = yaml_scalar("object-store", field.node().where);
    checkpoint.storage = read_storage(Field(usual, join_path(field.path(), "storage")));
  } else if (storage->is_scalar() && storage->text() == "node") {
    if (!of_node.exists()) storage->fail("the node has no storage", "a name of scenarios/hardware/storage.yaml");
    checkpoint.storage = of_node;
  } else {
    checkpoint.storage = read_storage(*storage);
  }
  return checkpoint;
}

}  // namespace foretrain
