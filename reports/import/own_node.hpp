// A machine of one's own begins as one of the catalogue.
#pragma once

#include <string>

namespace foretrain {

/// The file of a machine to be changed, under another name where one is said: each key with its meaning behind it, the
/// tree of its wiring drawn. Throws ScenarioError for a machine that there is not.
std::string own_node(const std::string& like, const std::string& name = "");

}  // namespace foretrain
