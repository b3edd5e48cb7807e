// A node's wiring for terminals: the tree below its sockets, then the links beside it.
#pragma once

#include <string>

#include "model/hardware/wiring_tree.hpp"

namespace foretrain {

/// "2 x nvlink3, 46.0 GB/s": payload of all of them together in one direction; empty where nothing is stated.
std::string describe(const Wires& wires);

/// A line a part, or for parts without children that hang side by side in the same way. Sockets that are like the one
/// before are reported in one line where there are more than four. Ends in a newline, each line begins with `indent`
/// blanks.
std::string wiring_text(const Node& node, const Network& network, int indent);

}  // namespace foretrain
