// The number of GPUs of each machine that train: all, or as many as stages, replicas and the batch divide. The rest
// stand idle and are paid for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// One number of GPUs per machine, as overrides of the scenario; none where that is what it says anyway.
struct MachineUse {
  int used = 0, of = 0;
  std::vector<std::string> overrides;
};

/// All GPUs first. A number that the scenario states is the only one. Machines whose number of GPUs is no power of two
/// are tried with the largest power of two below it and with half of that. Machines whose GPUs do not divide the batch,
/// with the most that do, where these are more than half. Throws ScenarioError where the cluster is none.
std::vector<MachineUse> machine_uses(const YamlNode& document);

/// A batch near `batch` (at most an eighth away) that `gpus` divide, or else a half, a quarter, … of them: what is left
/// to stages and tensor ranks is a power of two. Nothing where that is `batch` itself, or none is near.
std::optional<std::int64_t> dividing_batch(std::int64_t batch, std::int64_t gpus);

}  // namespace foretrain
