// `plan:` of a scenario. Out: a Plan without anything left open.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/scenario/workload/workload_reader.hpp"

namespace foretrain {

/// Reads the plan (absent: all defaults) for a workload. Train workloads have every key; data is what the other factors
/// leave of the GPUs. `taken` are nodes that other jobs have: the plan is placed on those that are left. Throws
/// ScenarioError for keys without meaning for the workload.
Plan read_plan(const std::optional<Field>& field, const ReadWorkload& workload, const Cluster& cluster,
               const std::vector<int>& taken = {});

/// The level that plan.zero states, by itself or as its `stage`.
int zero_level(const Field& field);

/// The names of the rules for `plan.sync.bucket` in scenarios/buckets.yaml.
std::vector<std::string> bucket_rule_names();

/// `order: tensor-context-expert-data-pipeline`, in any order; dimensions of one rank may be left out. The plan's sizes
/// must be known. Throws ScenarioError for unknown, doubled and missing dimensions.
void read_order(const Field& field, Plan& plan);

/// `placement: [0..7, 12..15]`, nodes in the order of ranks; or a word for as many as `gpus` need: `packed`, the first
/// ones, which holds where nothing is stated; `scattered`, one from each leaf (router, site) of the fabric in turn.
/// Throws ScenarioError for nodes that are listed twice, are `taken` by other jobs or are none of the cluster's.
std::vector<int> read_placement(const std::optional<Field>& field, const Cluster& cluster, double gpus,
                                const std::vector<int>& taken);
/// `0..7`, or one number: nodes of the cluster, appended to `nodes`, which must not have them yet, nor may others.
void read_nodes(const Field& field, const Cluster& cluster, std::vector<int>& nodes,
                const std::vector<int>& taken = {});

}  // namespace foretrain
