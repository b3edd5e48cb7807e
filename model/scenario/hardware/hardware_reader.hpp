// Hardware files (and inline mappings of the same keys) to the values of model/hardware/cluster.hpp: what the readers
// of this room offer each other and the rooms above.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/collectives/contention.hpp"
#include "model/hardware/cluster.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/figures.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "model/workload/recovery.hpp"

namespace foretrain {

/// Five times the largest machines of 2025, of which a prediction still takes seconds.
inline constexpr std::int64_t most_nodes = 131'072, most_gpus = 1'048'576;

/// A GPU: a catalogue name, a path, a mapping of a GPU file's keys, or { preset: NAME, … } with some of them replaced.
Gpu read_gpu(const Field& field);

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

/// A node, in the same four ways.
Node read_node(const Field& field);

Cluster read_cluster(const Field& field);

/// The catalogue entry behind a name, a path or a mapping with `preset`; a mapping without is taken as it is.
Field resolve_preset(const Field& field, Catalogue section);

/// Fills vertices, link_types and links of `node`, whose GPU and socket counts are set. Returns the entry of each link,
/// for complaints. Link types are the node's own (may be absent), else those of scenarios/hardware/links.yaml.
std::vector<Field> read_wiring(const Field& wiring, const std::optional<Field>& own_link_types, Node& node,
                               FigureLog& log);
void read_nic_attachment(const Field& nics, const std::optional<Field>& own_link_types, Node& node, FigureLog& log);
/// Throws ScenarioError for what wiring cannot be. `links`: the entry of `wiring` of each link.
void check_wiring(const Node& node, const Field& wiring, const std::vector<Field>& links);

/// `network:` with every key optional: values given replace those of `base`. Replaced figures are noted in `log`. Where
/// a transport is stated and no efficiency, the efficiency is the transport's payload share.
Network read_network(const Field& field, const Network& base, FigureLog& log);
/// `fabric:`. Links whose bandwidth is not stated are as fast as `card`.
Fabric read_fabric(const Field& field, BytesPerSecond card, FigureLog& log);
/// An entry of `faults:`, a card or link that is slower than its like, or broken.
Fault read_fault(const Field& field);
Jitter read_jitter(const Field& field);
/// Throws ScenarioError, at the key below `cluster` that is to blame, for what check_network() finds.
void require_possible_network(const Cluster& cluster, const Field& field);

void read_price(const Field& field, const Field& cluster_field, Cluster& cluster);
Energy read_energy(const Field& field, const Field& cluster_field, const Cluster& cluster);
Failures read_failures(const Field& field);
Recovery read_recovery(const std::optional<Field>& field, const Cluster& cluster);

/// `background`, traffic of others, between the memories of GPUs (gpu3, by rank) and of hosts (node1, its first socket;
/// node1/cpu1; host of gpu3). Without `rate` a flow takes its fair share.
std::vector<BackgroundFlow> read_background(const Field& field, const Cluster& cluster);

/// A name of scenarios/hardware/storage.yaml, a mapping of an entry's keys, or { preset: NAME, … } with some replaced.
Storage read_storage(const Field& field, FigureLog& log);
/// The same for storage that belongs to no node: Storage::constants holds its figures.
Storage read_storage(const Field& field);

/// All of scenarios/hardware/FILE, a table whose entries have names of their own: cards.yaml, storage.yaml, ….
const YamlNode& hardware_table(std::string_view file);
MappingReader hardware_table(std::string_view file, const keys::Mapping& keys);
/// The entry of a table that has the name; complains at the name with the nearest known one.
Field named_entry(const Field& table, const Field& name, std::string_view what);
/// The entry of a field that is its name, { preset: NAME, … } with keys that take the place of the entry's, or all
/// keys itself.
Field entry_or_changes(const Field& table, const Field& field, std::string_view what);

inline constexpr const char* any_share = "more than 0 %, up to 100 %";
/// "80 %" → 0.8; complains about another percentage than from above 0 % to 100 %. Nothing for another unit.
std::optional<double> percentage(const Field& field, std::string_view expected = any_share);
/// The same where another unit is wrong.
double read_share(const Field& field, std::string_view expected = any_share);

}  // namespace foretrain
