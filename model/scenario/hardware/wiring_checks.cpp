#include "model/scenario/hardware/hardware_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/hardware/wiring_tree.hpp"

namespace foretrain {

namespace {

// Intel Xeon 6 (R1S) has most of all processors of 2025: 136 lanes of PCIe 5.
constexpr int most_lanes = 136;

/// "pcie4-x16" → 16; 0 where the name says nothing of lanes.
int lanes_of(const LinkType& type) {
  const std::size_t at = type.name.rfind("-x");
  return at == std::string::npos ? 0 : number_behind(type.name.substr(at), "-x").value_or(0);
}

class WiringCheck {
 public:
  WiringCheck(const Node& node, const std::vector<Field>& links) : node_(node), links_(links) {
    joined_.resize(node.vertices.size());
    std::iota(joined_.begin(), joined_.end(), 0);
    const auto socket = std::ranges::find(node.vertices, VertexKind::cpu, &NodeVertex::kind) - node.vertices.begin();
    for (std::size_t i = 0; i < node.vertices.size(); ++i) {
      if (node.vertices[i].kind == VertexKind::cpu) joined_[i] = static_cast<int>(socket);  // by links of their own
    }
  }

  void run() {
    for (std::size_t i = 0; i < node_.links.size(); ++i) {
      check_kind(i);
      check_twice(i);
      if (type(i).kind != LinkKind::pcie) continue;
      check_one_parent(i);
      check_ring(i);
      check_lanes(i);
    }
    check_dead_ends();
  }

 private:
  [[nodiscard]] const NodeVertex& end_a(std::size_t link) const {
    return node_.vertices[at_index(node_.links[link].a)];
  }
  [[nodiscard]] const NodeVertex& end_b(std::size_t link) const {
    return node_.vertices[at_index(node_.links[link].b)];
  }
  [[nodiscard]] const LinkType& type(std::size_t link) const {
    return node_.link_types[at_index(node_.links[link].type)];
  }
  [[nodiscard]] bool has_end(std::size_t link, VertexKind kind) const {
    return end_a(link).kind == kind || end_b(link).kind == kind;
  }
  [[nodiscard]] bool joins(std::size_t link, VertexKind kind) const {
    return end_a(link).kind == kind && end_b(link).kind == kind;
  }
  [[noreturn]] void fail(std::size_t link, const char* key, std::string got, std::string expected) const {
    links_[link].find(key).value_or(links_[link]).fail(std::move(got), std::move(expected));
  }

  /// NVLink does not end in PCIe switches, nor PCIe in NVSwitches or between two GPUs, nor a link of sockets in a GPU.
  void check_kind(std::size_t link) const {
    const LinkKind kind = type(link).kind;
    const bool nvlink = kind == LinkKind::nvlink || kind == LinkKind::nvswitch;
    const auto refuse = [&](const std::string& right) {
      fail(link, "link", fmt::format("{} between {} and {}", type(link).name, end_a(link).name, end_b(link).name),
           right);
    };
    if (has_end(link, VertexKind::nvswitch) && !nvlink) refuse("a link of kind nvlink, such as nvlink4");
    if (has_end(link, VertexKind::pcie_switch) && kind != LinkKind::pcie)
      refuse("a link of kind pcie, such as pcie5-x16");
    if (joins(link, VertexKind::gpu) && !nvlink) {
      refuse("a link of kind nvlink, or a PCIe switch between them: [gpu0..gpu1, plx0]");
    }
    if (has_end(link, VertexKind::gpu) && kind == LinkKind::socket)
      refuse("a link of kind pcie or nvlink: socket links join processors");
  }

  /// The same two ends by the same kind of link in two entries.
  void check_twice(std::size_t link) {
    const auto [a, b] = std::minmax(end_a(link).name, end_b(link).name);
    const auto known = entries_.emplace(std::pair(a, b), std::vector<std::size_t>{}).first;
    for (const std::size_t other : known->second) {
      if (node_.links[other].type != node_.links[link].type) continue;
      fail(link, "between", fmt::format("{} and {} are linked by {} already", a, b, type(link).name),
           "count: how many links there are, in one entry");
    }
    known->second.push_back(link);
  }

  void check_one_parent(std::size_t link) {
    for (const NodeVertex* end : {&end_a(link), &end_b(link)}) {
      if (end->kind != VertexKind::gpu) continue;
      const NodeVertex& other = end == &end_a(link) ? end_b(link) : end_a(link);
      const auto [known, is_first] = parents_.emplace(end->name, other.name);
      if (!is_first && known->second != other.name) {
        fail(link, "between", fmt::format("{} hangs on {} already", end->name, known->second),
             "one PCIe switch or processor for each GPU");
      }
    }
  }

  /// PCIe is a tree: two switches, or a switch and a processor, are joined in one way alone.
  void check_ring(std::size_t link) {
    if (has_end(link, VertexKind::gpu) || joins(link, VertexKind::cpu)) return;
    if (sockets_alone(node_, node_.links[link].a) > 0 || sockets_alone(node_, node_.links[link].b) > 0) return;
    const int a = root_of(node_.links[link].a), b = root_of(node_.links[link].b);
    if (a == b) {
      fail(link, "between",
           fmt::format("{} and {} are joined already: PCIe switches in a ring", end_a(link).name, end_b(link).name),
           "a tree, in which one way leads from each switch to its processor");
    }
    joined_[at_index(a)] = b;
  }
  [[nodiscard]] int root_of(int vertex) const {
    while (joined_[at_index(vertex)] != vertex) vertex = joined_[at_index(vertex)];
    return vertex;
  }

  /// Of one link alone: what virtual machines say of their sockets is no sum of lanes.
  void check_lanes(std::size_t link) const {
    const int lanes = lanes_of(type(link)) * node_.links[link].count;
    if (lanes <= most_lanes) return;
    fail(link, "count", fmt::format("{} lanes of PCIe between {} and {}", lanes, end_a(link).name, end_b(link).name),
         fmt::format("at most {}, as processors have", most_lanes));
  }

  /// A switch with one link, and no network card.
  void check_dead_ends() const {
    std::vector<int> uses(node_.vertices.size());
    for (const NodeLink& link : node_.links) {
      ++uses[at_index(link.a)];
      ++uses[at_index(link.b)];
    }
    for (const int place : node_.nic_attachment) ++uses[at_index(place)];
    for (std::size_t i = 0; i < node_.links.size(); ++i) {
      for (const int end : {node_.links[i].a, node_.links[i].b}) {
        const NodeVertex& vertex = node_.vertices[at_index(end)];
        const bool is_switch = vertex.kind == VertexKind::pcie_switch || vertex.kind == VertexKind::nvswitch;
        if (!is_switch || uses[at_index(end)] > 1 || node_.gpus == 1) continue;
        fail(i, "between", fmt::format("nothing else hangs on {}", vertex.name),
             "a link to a GPU, or a network card, that hangs there");
      }
    }
  }

  const Node& node_;
  const std::vector<Field>& links_;
  std::vector<int> joined_;
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> entries_;
  std::map<std::string, std::string> parents_;
};

}  // namespace

void check_wiring(const Node& node, const std::vector<Field>& links) { WiringCheck(node, links).run(); }

}  // namespace foretrain
