#include "model/scenario/checkpoint_reader.hpp"

#include "model/scenario/storage_reader.hpp"

namespace foretrain {

Checkpoint read_checkpoint(const Field& field, const Storage& usual) {
  const MappingReader keys = field.mapping(keys::checkpoint);
  Checkpoint checkpoint;
  const Field every = keys["every"];
  checkpoint.best_interval = every.is_scalar() && every.text() == "auto";
  if (!checkpoint.best_interval) checkpoint.every = static_cast<int>(every.integer({1, 1'000'000'000}));
  checkpoint.mode = keys.choice_or("mode", checkpoint.mode);
  const auto storage = keys.find("storage");
  checkpoint.storage = storage ? read_storage(*storage) : usual;
  if (checkpoint.mode == Checkpoint::Mode::in_memory) return checkpoint;
  if (!checkpoint.storage.exists()) {
    field.fail("the node has no storage", "storage: a name of scenarios/hardware/storage.yaml, or a mapping");
  }
  return checkpoint;
}

}  // namespace foretrain
