// `storage:` of a node or a loader, and the catalogue of storage (scenarios/hardware/storage.yaml).
#pragma once

#include "model/cost/storage.hpp"
#include "model/scenario/figures.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// A name of the catalogue, a mapping of an entry's keys, or { preset: NAME, … } with some of them replaced. Throws
/// ScenarioError for what is unknown, missing or impossible: an inner zone faster than the outer one, a seek to the
/// next track longer than the average one.
Storage read_storage(const Field& field, FigureLog& log);
/// The same for storage that belongs to no node: Storage::constants holds its figures.
Storage read_storage(const Field& field);

/// { kind: disk_read | disk_write, order (= random), block (= 4 KiB), queue_depth (= 1), streams (= 1), zone (= 0.5),
/// direct (= true), size (= one block), storage (= the node's) }: the fields of DiskPattern.
StorageWorkload read_storage_workload(const Field& field, bool write, const Storage& usual);
/// Whether an operator's kind is one of the two.
bool is_storage_kind(std::string_view kind);

}  // namespace foretrain
