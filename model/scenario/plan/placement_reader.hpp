// `order:` and `placement:` of a plan: which GPU does what.
#pragma once

#include <optional>
#include <vector>

#include "model/parallelism/plan.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// `tensor-context-expert-data-pipeline`, in any order; dimensions of one rank may be left out. The plan's sizes must
/// be known. Throws ScenarioError for unknown, doubled and missing dimensions.
void read_order(const Field& field, Plan& plan);

/// `[0..7, 12..15]`, nodes in the order of ranks; or a word for as many as `gpus` need: `packed`, the first ones, which
/// holds where nothing is stated; `scattered`, one from each leaf (router, site) of the fabric in turn. Throws
/// ScenarioError for nodes that are listed twice, are `taken` by other jobs or are none of the cluster's.
std::vector<int> read_placement(const std::optional<Field>& field, const Cluster& cluster, double gpus,
                                const std::vector<int>& taken);

/// `0..7`, or one number: nodes of the cluster, appended to `nodes`, which must not have them yet, nor may others.
void read_nodes(const Field& field, const Cluster& cluster, std::vector<int>& nodes,
                const std::vector<int>& taken = {});

}  // namespace foretrain
