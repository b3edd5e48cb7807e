// `cluster.failures:` and `workload.train.recovery:` of a scenario.
#pragma once

#include <optional>

#include "model/hardware/cluster.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "model/workload/recovery.hpp"

namespace foretrain {

/// A name of scenarios/hardware/failures.yaml, or { preset: NAME, gpu: 50000 h, node: 1e-5 /hour, switches: 4,
/// stragglers: { gpu: 100000 h, speed: 80 %, noticed: 1 h }, seed: 1 }.
Failures read_failures(const Field& field);

/// { heartbeat: 5 s, missed: 3, start: 60 s, initialise: 20 s, spares: 2, repair: 24 h, servers: replicated }, each as
/// failures.yaml has it where it is not stated.
Recovery read_recovery(const std::optional<Field>& field, const Cluster& cluster);

}  // namespace foretrain
