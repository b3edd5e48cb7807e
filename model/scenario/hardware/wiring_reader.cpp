#include "model/scenario/hardware/hardware_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/hardware/wiring_graph.hpp"
#include "model/hardware/wiring_tree.hpp"

namespace foretrain {

namespace {

LinkType read_link_type(const std::string& name, const Field& field, FigureLog& log) {
  const MappingReader type = field.mapping(keys::link_type);
  LinkType result;
  type.fill(result);
  type.fail_if(result.collective_efficiency > 1.0, "collective_efficiency", "above 1", "a share of the bandwidth");
  result.name = name;
  const auto stated = type.find("source");
  const Source source = stated ? read_source(*stated)
                               : Source{ConstantKind::assumption, fmt::format("stated in {}", field.where().text())};
  for (const char* key : {"bandwidth", "latency", "collective_efficiency", "gpu_bandwidth"}) {
    if (const auto figure = type.find(key))
      log.add(Field(figure->node(), fmt::format("links.{}.{}", name, key)), source);
  }
  return result;
}

/// Finds a link type by name: the node's own first, then the catalogue's.
LinkType find_link_type(const Field& name, const std::optional<Field>& own, FigureLog& log) {
  std::vector<Field> tables = {Field(hardware_table("links.yaml"), "").mapping(keys::links_file)["links"]};
  if (own) tables.insert(tables.begin(), *own);
  std::vector<std::string> known;
  for (const Field& types : tables) {
    if (!types.is_mapping())
      types.fail("link types are no mapping", "{ name: { kind: pcie, bandwidth: …, latency: … } }");
    if (const auto type = types.find(name.text())) return read_link_type(name.text(), *type, log);
    for (const YamlEntry& entry : types.node().entries) known.push_back(entry.key);
  }
  const bool generation = name.text().starts_with("pcie");  // all are near each other
  if (generation) std::erase_if(known, [](const std::string& one) { return !one.starts_with("pcie"); });
  name.fail(fmt::format("unknown link type \"{}\"", name.text()),
            did_you_mean(generation ? std::nullopt : nearest_word(name.text(), known),
                         fmt::format("one of {}, or an entry in link_types", or_list(known, 40))));
}

/// Index of a link type in the node, added when it is new.
int link_type_index(const Field& name, const std::optional<Field>& own, Node& node, FigureLog& log) {
  for (std::size_t i = 0; i < node.link_types.size(); ++i) {
    if (node.link_types[i].name == name.text()) return static_cast<int>(i);
  }
  node.link_types.push_back(find_link_type(name, own, log));
  return static_cast<int>(node.link_types.size()) - 1;
}

/// The kind of a vertex follows from its name.
VertexKind vertex_kind(const std::string& name, const Field& field, const Node& node) {
  if (const auto gpu = number_behind(name, "gpu")) {
    if (*gpu >= node.gpus) {
      field.fail(fmt::format("{} does not exist", name), fmt::format("gpu0 to gpu{}", node.gpus - 1));
    }
    return VertexKind::gpu;
  }
  if (const auto cpu = number_behind(name, "cpu")) {
    if (*cpu >= node.cpu.sockets) {
      field.fail(fmt::format("{} does not exist", name), fmt::format("cpu0 to cpu{}", node.cpu.sockets - 1));
    }
    return VertexKind::cpu;
  }
  if (name.starts_with("nvswitch")) return VertexKind::nvswitch;
  if (name.starts_with("plx") || name.starts_with("pcie")) return VertexKind::pcie_switch;
  field.fail(fmt::format("unknown part \"{}\"", name),
             "gpu<number>, cpu<number>, nvswitch…, or plx… and pcie… for PCIe switches");
}

int vertex_index(const std::string& name, const Field& field, Node& node) {
  const VertexKind kind = vertex_kind(name, field, node);
  for (std::size_t i = 0; i < node.vertices.size(); ++i) {
    if (node.vertices[i].name == name) return static_cast<int>(i);
  }
  node.vertices.push_back({name, kind});
  return static_cast<int>(node.vertices.size()) - 1;
}

/// "gpu0..gpu7" → gpu0, gpu1, …, gpu7; a single name stands for itself.
std::vector<std::string> expand_range(const Field& field) {
  const std::string& text = field.text();
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return {text};
  const std::string first_name = text.substr(0, dots), last_name = text.substr(dots + 2);
  const std::size_t digits = first_name.find_first_of("0123456789");
  const std::string prefix = first_name.substr(0, digits);
  const auto first = number_behind(first_name, prefix), last = number_behind(last_name, prefix);
  if (prefix.empty() || !first || !last || *last < *first || *last - *first > 1024) {
    field.fail(fmt::format("\"{}\" is no range", text), "a range such as gpu0..gpu7");
  }
  std::vector<std::string> names;
  for (int i = *first; i <= *last; ++i) names.push_back(fmt::format("{}{}", prefix, i));
  return names;
}

void read_link(const Field& field, const std::optional<Field>& own, Node& node, FigureLog& log,
               std::vector<Field>& entries) {
  const MappingReader link = field.mapping(keys::link);
  const std::vector<Field> ends = link["between"].list();
  if (ends.size() != 2) link.fail("between", fmt::format("{} ends", ends.size()), "two ends: [gpu0, plx0]");
  std::vector<std::string> left = expand_range(ends[0]), right = expand_range(ends[1]);
  const std::size_t pairs = std::max(left.size(), right.size());
  if (left.size() != right.size() && left.size() != 1 && right.size() != 1) {
    link.fail("between", fmt::format("ranges of {} and {} parts", left.size(), right.size()),
              "ranges of equal length, or one part at one end");
  }
  left.resize(pairs, left.front());
  right.resize(pairs, right.front());
  const int type = link_type_index(link["link"], own, node, log);
  const int count = link.int_or("count", 1, {1, 1024});
  for (std::size_t i = 0; i < pairs; ++i) {
    const int a = vertex_index(left[i], ends[0], node);
    const int b = vertex_index(right[i], ends[1], node);
    if (a == b) link.fail("between", fmt::format("{} is linked to itself", left[i]), "two different parts");
    node.links.push_back({a, b, type, count});
    entries.push_back(field);
  }
}

/// Complains of what is wrong in kinds of links that no link is of.
void read_unused_types(const Field& types, const Node& node) {
  for (const YamlEntry& entry : types.node().entries) {
    if (std::ranges::find(node.link_types, entry.key, &LinkType::name) != node.link_types.end()) continue;
    FigureLog unused("unused", types);
    static_cast<void>(read_link_type(entry.key, types.below(entry), unused));
  }
}

class WiringCheck {
 public:
  WiringCheck(const Node& node, const std::vector<Field>& links) : node_(node), links_(links) {
    joined_.resize(node.vertices.size());
    std::iota(joined_.begin(), joined_.end(), 0);
    for (std::size_t i = 0; i < node.vertices.size(); ++i) {
      if (node.vertices[i].kind == VertexKind::cpu) joined_[i] = node.gpus;  // by links of their own
    }
  }

  void run() {
    for (std::size_t i = 0; i < node_.links.size(); ++i) {
      check_kind(i);
      check_twice(i);
      if (type(i).kind != LinkKind::pcie) continue;
      check_ring(i);
      check_lanes(i);
    }
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
    const auto refuse_if = [&](bool wrong, const char* right) {
      if (!wrong) return;
      fail(link, "link", fmt::format("{} between {} and {}", type(link).name, end_a(link).name, end_b(link).name),
           right);
    };
    refuse_if(has_end(link, VertexKind::nvswitch) && !nvlink, "a link of kind nvlink, such as nvlink4");
    refuse_if(has_end(link, VertexKind::pcie_switch) && kind != LinkKind::pcie,
              "a link of kind pcie, such as pcie5-x16");
    refuse_if(joins(link, VertexKind::gpu) && !nvlink,
              "a link of kind nvlink, or a PCIe switch between them: [gpu0..gpu1, plx0]");
    refuse_if(has_end(link, VertexKind::gpu) && kind == LinkKind::socket,
              "a link of kind pcie or nvlink: socket links join processors");
  }

  void check_twice(std::size_t link) {
    const NodeLink& own = node_.links[link];
    const auto [a, b] = std::minmax(own.a, own.b);
    if (known_.emplace(a, b, own.type).second) return;
    fail(link, "between",
         fmt::format("{} and {} are linked by {} already", end_a(link).name, end_b(link).name, type(link).name),
         "count: how many links there are, in one entry");
  }

  /// PCIe is a tree, but for sockets and what nothing but sockets hangs on.
  void check_ring(std::size_t link) {
    const NodeLink& own = node_.links[link];
    const auto joins_sockets = [&](int part) { return part >= node_.gpus && sockets_alone(node_, part) > 0; };
    if (joins(link, VertexKind::cpu) || joins_sockets(own.a) || joins_sockets(own.b)) return;
    const int a = root_of(own.a), b = root_of(own.b);
    if (a == b) {
      fail(link, "between",
           fmt::format("{} and {} are joined already: PCIe in a ring", end_a(link).name, end_b(link).name),
           "a tree, in which one way leads from each GPU and switch to its processor");
    }
    joined_[at_index(a)] = b;
  }
  [[nodiscard]] int root_of(int vertex) const {
    while (joined_[at_index(vertex)] != vertex) vertex = joined_[at_index(vertex)];
    return vertex;
  }

  /// Of one link alone: what virtual machines say of their sockets is no sum of lanes. Its type's name ends in "-x16".
  void check_lanes(std::size_t link) const {
    constexpr int most = 136;  // Intel Xeon 6 (R1S) has most of all processors of 2025: of PCIe 5
    const std::string& name = type(link).name;
    const std::size_t at = name.rfind("-x");
    if (at == std::string::npos) return;
    const int lanes = number_behind(name.substr(at), "-x").value_or(0) * node_.links[link].count;
    if (lanes <= most) return;
    fail(link, "count", fmt::format("{} lanes of PCIe between {} and {}", lanes, end_a(link).name, end_b(link).name),
         fmt::format("at most {}, as processors have", most));
  }

  const Node& node_;
  const std::vector<Field>& links_;
  std::vector<int> joined_;
  std::set<std::tuple<int, int, int>> known_;
};

/// Each part must be reached from the first GPU, and each GPU and socket from the first socket: an NVSwitch leads from
/// GPU to GPU, and not on to processors.
void require_connection(const Node& node, const Field& wiring) {
  WiringGraph graph(node);
  for (const NodeLink& link : node.links) {
    graph.add_wire(link.a, link.b, {});
    graph.add_wire(link.b, link.a, {});
  }
  for (const int from : {0, node.gpus}) {
    const auto paths = graph.paths_from(from, WiringGraph::Through::anything);
    std::vector<std::string> lost;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const VertexKind kind = node.vertices[i].kind;
      const bool any = from == 0 || kind == VertexKind::gpu || kind == VertexKind::cpu;
      if (any && !paths[i]) lost.push_back(node.vertices[i].name);
    }
    if (lost.empty()) continue;
    wiring.fail(fmt::format("no link leads from {} to {}", node.vertices[at_index(from)].name, fmt::join(lost, ", ")),
                "links by which every GPU and CPU reaches all others");
  }
}

}  // namespace

std::vector<Field> read_wiring(const Field& wiring, const std::optional<Field>& own, Node& node, FigureLog& log) {
  for (int i = 0; i < node.gpus; ++i) node.vertices.push_back({fmt::format("gpu{}", i), VertexKind::gpu});
  for (int i = 0; i < node.cpu.sockets; ++i) node.vertices.push_back({fmt::format("cpu{}", i), VertexKind::cpu});
  std::vector<Field> entries;
  for (const Field& link : wiring.list()) read_link(link, own, node, log, entries);
  if (own) read_unused_types(*own, node);
  return entries;
}

void read_nic_attachment(const Field& nics, const std::optional<Field>& own, Node& node, FigureLog& log) {
  const MappingReader attachment = nics.mapping(keys::nics);
  for (const Field& place : attachment["attached_to"].list_or_one()) {
    for (const std::string& name : expand_range(place)) {
      const std::size_t known = node.vertices.size();
      node.nic_attachment.push_back(vertex_index(name, place, node));
      if (node.vertices.size() > known) place.fail(fmt::format("{} is in no link", name), "a part of the wiring");
      const VertexKind kind = node.vertices[static_cast<std::size_t>(node.nic_attachment.back())].kind;
      if (kind != VertexKind::cpu && kind != VertexKind::pcie_switch) {
        place.fail(fmt::format("a network card hangs on {}", name), "a PCIe switch or a processor: plx0, cpu0");
      }
    }
  }
  if (node.nic_attachment.empty()) attachment.fail("attached_to", "no part", "the parts that network cards hang on");
  node.nic_attachment_link = find_link_type(attachment["link"], own, log);
}

void check_wiring(const Node& node, const Field& wiring, const std::vector<Field>& links) {
  WiringCheck(node, links).run();
  require_connection(node, wiring);
}

}  // namespace foretrain
