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

/// `cpu:` of a node. Its `hierarchy` is a name of scenarios/hardware/processors, a mapping of the keys of such a
/// file, or { preset: NAME, … } with some of them replaced.
Cpu read_cpu(const Field& field, FigureLog& log);

/// The files of scenarios/hardware/processors: a microarchitecture and the processors that have it, as
/// "GenuineIntel 6 143" (vendor, family, model of /proc/cpuinfo).
struct KnownProcessors {
  std::string hierarchy;
  std::vector<std::string> processors;
  BytesPerSecond socket_bandwidth;  ///< memory bandwidth, where a machine of this kind does not tell
  std::string slot = {};            ///< the widest PCIe link that it has; empty: not known
};
std::vector<KnownProcessors> known_processors();

/// A node, in the same four ways. Throws ScenarioError for anything missing, unknown or impossible: no GPUs, wiring to
/// vertices that cannot exist, parts that no link reaches.
Node read_node(const Field& field);

/// `cluster:` of a scenario.
Cluster read_cluster(const Field& field);

/// The tree of a catalogue entry behind a name, a path or a mapping with `preset`; a mapping without is taken as it is.
YamlNode resolve_preset(const Field& field, CatalogueSection section);

}  // namespace foretrain
