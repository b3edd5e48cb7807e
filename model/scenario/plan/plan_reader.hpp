// `plan:` of a scenario, and trainers' files, which say what a plan leaves open. Out: a Plan without
// anything left open.
#pragma once

#include <optional>

#include "model/scenario/workload/workload_reader.hpp"

namespace foretrain {

/// Reads the plan (absent: all defaults) for a workload. Train workloads have every key; data is what the other factors
/// leave of the GPUs. `taken` are nodes that other jobs have: the plan is placed on those that are left. Throws
/// ScenarioError for keys without meaning for the workload.
Plan read_plan(const std::optional<Field>& field, const ReadWorkload& workload, const Cluster& cluster,
               const std::vector<int>& taken = {});

/// The level that plan.zero states, by itself or as its `stage`.
int zero_level(const Field& field);

}  // namespace foretrain
