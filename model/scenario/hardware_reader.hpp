// Hardware files (and inline mappings of the same keys) to the values of model/hardware/cluster.hpp.
#pragma once

#include <string>

#include "model/hardware/cluster.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/figures.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// A GPU: a catalogue name, a path, a mapping of a GPU file's keys, or { preset: NAME, … } with some of them replaced.
Gpu read_gpu(const Field& field);

/// A node, in the same four ways. Throws ScenarioError for anything missing, unknown or impossible: no GPUs, wiring to
/// vertices that cannot exist, parts that no link reaches.
Node read_node(const Field& field);

/// `cluster:` of a scenario.
Cluster read_cluster(const Field& field);

/// The tree of a catalogue entry behind a name, a path or a mapping with `preset`; a mapping without is taken as it is.
YamlNode resolve_preset(const Field& field, CatalogueSection section);

}  // namespace foretrain
