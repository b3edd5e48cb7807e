#include "model/scenario/workload/checkpoint_reader.hpp"

#include "model/scenario/hardware/storage_reader.hpp"

namespace foretrain {

namespace {

// A machine's own disks fail with it: what nobody states has to outlive a machine.
constexpr const char* usual_checkpoint_storage = "object-store";

}  // namespace

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
    const YamlNode usual = yaml_scalar(usual_checkpoint_storage, field.node().where);
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
