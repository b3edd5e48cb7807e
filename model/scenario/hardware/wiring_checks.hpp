// What wiring cannot be, told at the line that says it: links of a kind that does not fit their ends, rings of PCIe,
// switches that lead nowhere, more lanes than a processor has.
#pragma once

#include <vector>

#include "model/hardware/cluster.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// `links`: the entry of `wiring` of each of the node's links. Throws ScenarioError.
void check_wiring(const Node& node, const std::vector<Field>& links);

}  // namespace foretrain
