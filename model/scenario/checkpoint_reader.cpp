#include "model/scenario/checkpoint_reader.hpp"

#include "model/scenario/storage_reader.hpp"

namespace foretrain {

Checkpoint read_checkpoint(const Field& field, const Storage& usual) {
  const MappingReader keys = field.mapping(keys::checkpoint);
  Checkpoint checkpoint;
  checkpoint.every = static_cast<int>(keys["every"].integer({1, 1'000'000'000}));
  checkpoint.mode = keys.choice_or("mode", checkpoint.mode);
  const auto storage = keys.find("storage");
  checkpoint.storage = storage ? read_storage(*storage) : usual;
  if (!checkpoint.storage.exists()) {
    field.fail("the node has no storage", "storage: a name of scenarios/hardware/storage.yaml, or a mapping");
  }
  return checkpoint;
}

}  // namespace foretrain
