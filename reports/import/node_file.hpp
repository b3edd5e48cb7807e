// Node files for people to change: every key with what it means, the wiring with a drawing of its tree.
#pragma once

#include <map>
#include <string>

#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// The document of a node as a file. Behind each key stands its meaning, from the tables of keys, and what `remarks`
/// say of it (by dotted key; of links "wiring[3]"). `title` and the wiring's tree stand in comments. Throws
/// ScenarioError where the node cannot be built.
std::string commented_node(const YamlNode& document, const std::map<std::string, std::string>& remarks,
                           const std::string& title);

}  // namespace foretrain
