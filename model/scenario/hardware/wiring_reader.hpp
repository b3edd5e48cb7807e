// `wiring:` of a node: which parts are joined by which links.
#pragma once

#include <vector>

#include "model/hardware/cluster.hpp"
#include "model/scenario/figures.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// Fills vertices, link_types and links of `node`, whose GPU and socket counts are set. Link types are looked up in the
/// node's own `link_types` (may be absent), then in scenarios/hardware/links.yaml; those that are used are noted in
/// `log`. Returns the entry of each link, for complaints. Throws ScenarioError for unknown vertices and link types, and
/// links from a vertex to itself.
std::vector<Field> read_wiring(const Field& wiring, const std::optional<Field>& own_link_types, Node& node,
                               FigureLog& log);

/// Vertices and link of `nics: { attached_to: [ … ], link: … }`.
void read_nic_attachment(const Field& nics, const std::optional<Field>& own_link_types, Node& node, FigureLog& log);

}  // namespace foretrain
