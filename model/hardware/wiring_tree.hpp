// A node's wiring as people draw it: what hangs below which socket, and what lies beside that tree.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/hardware/cluster.hpp"

namespace foretrain {

/// One link or several side by side; none where how a card hangs on its place is not stated.
struct Wires {
  LinkType type;
  int count = 0;
  [[nodiscard]] bool stated() const { return count > 0; }
  [[nodiscard]] BytesPerSecond bandwidth() const { return type.bandwidth * count; }  ///< one direction, payload
  bool operator==(const Wires&) const = default;
};

struct WiringTree {
  struct Part {
    std::string name;
    VertexKind kind = VertexKind::gpu;
    int parent = -1;
    Wires above = {};                ///< to the parent
    int depth = 0;                   ///< of a socket 0
    std::vector<int> children = {};  ///< switches, then GPUs, then NICs, in the order of their numbers
  };
  struct Link {
    int a = 0, b = 0;  ///< parts
    Wires wires;
  };

  std::vector<Part> parts;   ///< of the node's vertices in their order, then NICs nic0, nic1, …
  std::vector<int> roots;    ///< sockets, and what no link of PCIe or of a processor leads to
  std::vector<Link> others;  ///< between sockets (also over a switch on which nothing else hangs), GPUs, NVSwitches, …

  /// Whether the same hangs below both in the same way, names apart.
  [[nodiscard]] bool alike(int a, int b) const;
  /// Parts without children at or below one, in the order in which they are drawn.
  [[nodiscard]] std::vector<int> leaves(int part) const;
};

/// Sockets on which all links of a switch end; 0 where one ends elsewhere.
std::size_t sockets_alone(const Node& node, int vertex);

/// The tree of shortest ways from the sockets over PCIe, or what else joins processors and GPUs. `network`: the node's,
/// or the cluster's overrides of it. `node` must have passed check_node().
WiringTree wiring_tree(const Node& node, const Network& network);

}  // namespace foretrain
