#include "model/hardware/wiring_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

class Grower {
 public:
  Grower(const Node& node, const Network& network) : node_(node), network_(network) {}

  WiringTree grow() {
    for (const NodeVertex& vertex : node_.vertices) tree_.parts.push_back({vertex.name, vertex.kind});
    used_.resize(node_.links.size());
    for (int part = 0; part < size(); ++part) {
      if (kind(part) == VertexKind::cpu) tree_.roots.push_back(part);
    }
    spread();
    add_islands();
    add_cards();
    for (std::size_t i = 0; i < node_.links.size(); ++i) {
      const NodeLink& link = node_.links[i];
      if (!used_[i]) tree_.others.push_back({link.a, link.b, wires(link)});
    }
    for (WiringTree::Part& part : tree_.parts) sort_children(part);
    return std::move(tree_);
  }

 private:
  [[nodiscard]] int size() const { return static_cast<int>(tree_.parts.size()); }
  [[nodiscard]] VertexKind kind(int part) const { return tree_.parts[at_index(part)].kind; }
  [[nodiscard]] Wires wires(const NodeLink& link) const { return {node_.link_types[at_index(link.type)], link.count}; }

  /// A switch that has nothing but sockets, two or more.
  [[nodiscard]] bool joins_sockets(int part) const {
    if (kind(part) != VertexKind::pcie_switch) return false;
    if (std::ranges::find(node_.nic_attachment, part) != node_.nic_attachment.end()) return false;
    return sockets_alone(node_, part) > 1;
  }

  /// From the roots, by links from a part that is reached to one that is not.
  void spread() {
    std::vector<int> reached = tree_.roots;
    for (std::size_t at = 0; at < reached.size(); ++at) {
      const int from = reached[at];
      if (kind(from) == VertexKind::gpu) continue;
      for (std::size_t i = 0; i < node_.links.size(); ++i) {
        const NodeLink& link = node_.links[i];
        if (link.a != from && link.b != from) continue;
        const int to = link.a == from ? link.b : link.a;
        if (kind(to) == VertexKind::nvswitch || joins_sockets(to)) continue;
        if (std::ranges::find(reached, to) != reached.end()) continue;
        WiringTree::Part& part = tree_.parts[at_index(to)];
        part.parent = from;
        part.above = wires(link);
        part.depth = tree_.parts[at_index(from)].depth + 1;
        tree_.parts[at_index(from)].children.push_back(to);
        used_[i] = true;
        reached.push_back(to);
      }
    }
  }

  /// GPUs and PCIe switches that nothing of PCIe leads to stand beside the sockets.
  void add_islands() {
    for (int part = 0; part < size(); ++part) {
      const bool switches = kind(part) == VertexKind::nvswitch || joins_sockets(part);
      const bool is_root = std::ranges::find(tree_.roots, part) != tree_.roots.end();
      if (tree_.parts[at_index(part)].parent < 0 && !is_root && !switches) tree_.roots.push_back(part);
    }
  }

  /// As routes have them (node_routes.cpp): on the stated places, or evenly on the sockets.
  void add_cards() {
    std::vector<int> places = node_.nic_attachment;
    if (places.empty()) {
      std::ranges::copy_if(tree_.roots, std::back_inserter(places),
                           [&](int root) { return kind(root) == VertexKind::cpu; });
    }
    for (int card = 0; card < network_.nics_per_node && !places.empty(); ++card) {
      const int place = places[at_index(card) * places.size() / at_index(network_.nics_per_node)];
      const bool stated = node_.nic_attachment_link.bandwidth.value() > 0.0;
      tree_.parts[at_index(place)].children.push_back(size());
      tree_.parts.push_back({fmt::format("nic{}", card),
                             VertexKind::nic,
                             place,
                             {node_.nic_attachment_link, stated ? 1 : 0},
                             tree_.parts[at_index(place)].depth + 1});
    }
  }

  void sort_children(WiringTree::Part& part) const {
    const auto rank = [&](int child) {
      const VertexKind of = kind(child);
      return of == VertexKind::nic ? 2 : of == VertexKind::gpu ? 1 : 0;
    };
    std::ranges::stable_sort(part.children,
                             [&](int a, int b) { return std::pair(rank(a), a) < std::pair(rank(b), b); });
  }

  const Node& node_;
  const Network& network_;
  WiringTree tree_;
  std::vector<bool> used_;  ///< of the node's links, by those of the tree
};

}  // namespace

bool WiringTree::alike(int a, int b) const {
  const Part &left = parts[at_index(a)], &right = parts[at_index(b)];
  return left.kind == right.kind && left.above == right.above &&
         std::ranges::equal(left.children, right.children, [this](int x, int y) { return alike(x, y); });
}

std::vector<int> WiringTree::leaves(int part) const {
  const Part& top = parts[at_index(part)];
  if (top.children.empty()) return {part};
  std::vector<int> all;
  for (const int child : top.children) {
    const std::vector<int> below = leaves(child);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

std::size_t sockets_alone(const Node& node, int vertex) {
  std::set<int> ends;
  for (const NodeLink& link : node.links) {
    if (link.a == vertex) ends.insert(link.b);
    if (link.b == vertex) ends.insert(link.a);
  }
  const auto is_socket = [&](int end) { return node.vertices[at_index(end)].kind == VertexKind::cpu; };
  return !is_socket(vertex) && std::ranges::all_of(ends, is_socket) ? ends.size() : 0;
}

WiringTree wiring_tree(const Node& node, const Network& network) { return Grower(node, network).grow(); }

}  // namespace foretrain
