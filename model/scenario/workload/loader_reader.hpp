// `workload.train.loader`, and a loader alone as an operator.
#pragma once

#include "model/scenario/figures.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// A loader. `usual` is the node's storage. Throws ScenarioError for contradictions: per_sample beside its parts,
/// copies that do not block from pageable memory, a data set without storage, decoding on the device without its time.
DataLoader read_loader(const Field& field, const Storage& usual);

/// { kind: data_loader, batch, … } with the keys of a loader.
LoaderWorkload read_loader_workload(const Field& field, const Storage& usual);

/// "5 %" or 0.05, below 100 % of the `whole`.
double read_share(const Field& field, std::string_view what, std::string_view whole);

}  // namespace foretrain
