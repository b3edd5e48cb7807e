// `jobs:` of a scenario: others on the same fabric.
#pragma once

#include <vector>

#include "model/scenario/scenario.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// `[ { scenario: other.yaml, nodes: 4..7 } ]`: scenarios (names of the catalogue, or files) as they are on these nodes
/// of this cluster, which takes the place of their own. `cluster_document` is what it was read from. Throws
/// ScenarioError for nodes that two of them have, and for jobs that train nothing or bring along others' traffic.
std::vector<Scenario> read_jobs(const Field& field, const YamlNode& cluster_document, const Cluster& cluster);

/// The nodes that they have.
std::vector<int> nodes_of_jobs(const std::vector<Scenario>& jobs);

}  // namespace foretrain
