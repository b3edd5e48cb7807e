// The tables of all keys that files may have, one for each mapping. A reader opens a mapping with the tables of what
// may stand in it: `field.mapping(keys::model, keys::transformer)`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/keys/key.hpp"

namespace foretrain::keys {

// scenario_keys.cpp
extern const Mapping scenario, cluster, network;
// node_keys.cpp
extern const Mapping node, link, link_type, links_file, cards_file, storage_file, storage, source, fabric;
// device_keys.cpp
extern const Mapping gpu, cpu, hierarchy, matrix_library, architectures_file;
// plan_keys.cpp
extern const Mapping plan, collective_plan, execution_plan, sync, buckets_file;
// train_keys.cpp
extern const Mapping workload, train, loader, loader_alone, disk_requests;
// model_keys.cpp
extern const Mapping model, transformer, language, encoder_decoder, layer;
// operator_keys.cpp
extern const Mapping operation, placed, alone, operand, cpu_matmul, lengths, memory_walk, gpu_chase, task, loop, run;
// reliability_keys.cpp
extern const Mapping failures, recovery, price, energy, energy_file, failures_file, prices_file;
// calibration_keys.cpp
extern const Mapping calibration, machine_calibration, trainer, framework_settings, learned_cluster;

/// Condition of `sync` keys that only parameter servers have.
inline constexpr std::string_view with_servers = "algorithm: parameter_server and its kinds";

/// Whether only parameter servers have this key of `sync`, or of a mapping in it.
bool is_server_key(std::string_view key);
/// Whether this is the word of an algorithm, and of one without servers.
bool has_no_servers(std::string_view word);

/// The table of a key whose value may be a mapping, or a list or names of such.
const Mapping& table_of(const Key& key);

/// The first table with further keys where the deciding key has this word.
const Mapping& variant_of(const Mapping& mapping, std::string_view word);

/// The key of that name; a table that lacks it is an InternalError.
const Key& key_of(const Mapping& mapping, std::string_view name);

/// Files behind the names of a catalogue.
struct CatalogueRow {
  std::string_view noun;          ///< "machine"
  std::string_view word = {};     ///< what errors and aliases call its files: "node"
  std::string_view folder = {};   ///< where these lie
  std::string_view listing = {};  ///< the command that lists them
};
const CatalogueRow& row_of(Catalogue catalogue);

/// A key that frameworks decide where a scenario leaves it out.
struct FrameworkKey {
  std::string mapping, name;  ///< "plan.sync", "plan.sync.bucket"
  const Key* row;
};
/// All of them, in the order of the tables; those on which others hang come first.
const std::vector<FrameworkKey>& framework_keys();

struct FileKind {
  std::string_view word;  ///< as `foretrain keys` calls it
  std::span<const Mapping* const> tables;
};
/// Scenarios first.
std::span<const FileKind> files();

}  // namespace foretrain::keys
