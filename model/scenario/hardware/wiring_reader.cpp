#include "model/scenario/hardware/hardware_reader.hpp"

#include <numeric>
#include <tuple>

#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/hardware/wiring_graph.hpp"
#include "model/hardware/wiring_tree.hpp"

namespace foretrain {

namespace {

LinkType read_link_type(const std::string& name, const Field& field, FigureLog& log) {
  const MappingReader type = field.mapping(keys::link_type);
  auto result = type.filled<LinkType>();
  type.fail_if(result.collective_efficiency > 1.0, "collective_efficiency", "above 1", "a share of the bandwidth");
  result.name = name;
  const auto source_of = [&](const std::string& figure) -> Source {
    const auto sources = type.find("sources");
    if (const auto own = sources ? sources->find(figure) : std::nullopt) return read_source(*own);
    if (const auto all = sources ? sources->find("default") : type.find("source")) return read_source(*all);
    return {ConstantKind::assumption, fmt::format("stated in {}", field.where().text())};
  };
  const MappingReader figures = Field(field.node(), "links." + name).mapping(keys::link_type);
  for (const char* const figure : {"bandwidth", "latency", "collective_efficiency", "gpu_bandwidth"})
    log.add(figures, {figure}, source_of(figure));
  return result;
}

/// Finds a link type by name: the node's own first, then the catalogue's.
LinkType find_link_type(const Field& name, const std::optional<Field>& own, FigureLog& log) {
  std::vector<Field> tables = {hardware_table("links.yaml", keys::links_file)["links"]};
  if (own) tables.insert(tables.begin(), *own);
  std::vector<std::string> known;
  for (const Field& types : tables) {
    types.fail_if(!types.is_mapping(), "link types are no mapping",
                  "{ name: { kind: pcie, bandwidth: …, latency: … } }");
    if (const auto type = types.find(name.text())) return read_link_type(name.text(), *type, log);
    for (const YamlEntry& entry : types.node().entries) known.push_back(entry.key);
  }
  const bool generation = name.text().starts_with("pcie");  // all are near each other
  if (generation) std::erase_if(known, [](const std::string& one) { return !one.starts_with("pcie"); });
  name.fail(fmt::format("unknown link type \"{}\"", name.text()),
            did_you_mean(generation ? std::nullopt : nearest_word(name.text(), known),
                         fmt::format("one of {}, or an entry in link_types", or_list(known, 40))));
}

/// The place of what has the name; of what `make` makes where none has, at the end.
template <typename T>
int place_of(std::vector<T>& all, const std::string& name, const auto& make) {
  const auto known = std::ranges::find(all, name, &T::name);
  if (known == all.end()) all.push_back(make());
  return static_cast<int>(std::ranges::find(all, name, &T::name) - all.begin());
}

/// The kind of a vertex follows from its name.
VertexKind vertex_kind(const std::string& name, const Field& field, const Node& node) {
  using Numbered = std::tuple<const char*, int, VertexKind>;
  for (const auto& [word, count, kind] :
       {Numbered("gpu", node.gpus, VertexKind::gpu), Numbered("cpu", node.cpu.sockets, VertexKind::cpu)}) {
    const auto number = number_behind(name, word);
    field.fail_if(number && *number >= count, "{0} does not exist", "{1}0 to {1}{2}", name, word, count - 1);
    if (number) return kind;
  }
  if (name.starts_with("nvswitch")) return VertexKind::nvswitch;
  if (name.starts_with("plx") || name.starts_with("pcie")) return VertexKind::pcie_switch;
  field.fail(fmt::format("unknown part \"{}\"", name),
             "gpu<number>, cpu<number>, nvswitch…, or plx… and pcie… for PCIe switches");
}

int vertex_index(const std::string& name, const Field& field, Node& node) {
  const VertexKind kind = vertex_kind(name, field, node);
  return place_of(node.vertices, name, [&] { return NodeVertex{name, kind}; });
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
  field.fail_if(prefix.empty() || !first || !last || *last < *first || *last - *first > 1024, "\"{}\" is no range",
                "a range such as gpu0..gpu7", text);
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
  link.fail_if(left.size() != right.size() && left.size() != 1 && right.size() != 1, "between",
               "ranges of {} and {} parts", "ranges of equal length, or one part at one end", left.size(),
               right.size());
  left.resize(pairs, left.front());
  right.resize(pairs, right.front());
  const Field name = link["link"];
  const int type = place_of(node.link_types, name.text(), [&] { return find_link_type(name, own, log); });
  const int count = link.value_or("count", 1);
  for (std::size_t i = 0; i < pairs; ++i) {
    const int a = vertex_index(left[i], ends[0], node);
    const int b = vertex_index(right[i], ends[1], node);
    if (a == b) link.fail("between", fmt::format("{} is linked to itself", left[i]), "two different parts");
    node.links.push_back({a, b, type, count});
    entries.push_back(field);
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
      const NodeLink& link = node_.links[i];
      const Link one{link, node_.vertices[at_index(link.a)], node_.vertices[at_index(link.b)],
                     node_.link_types[at_index(link.type)], links_[i]};
      check_kind(one);
      const auto [a, b] = std::minmax(link.a, link.b);
      one.at("between").fail_if(!known_.emplace(a, b, link.type).second, "{} and {} are linked by {} already",
                                "count: how many links there are, in one entry", one.a.name, one.b.name, one.type.name);
      if (one.type.kind != LinkKind::pcie) continue;
      check_ring(one);
      check_lanes(one);
    }
  }

 private:
  struct Link {
    const NodeLink& link;
    const NodeVertex &a, &b;
    const LinkType& type;
    const Field& stated;

    [[nodiscard]] bool has_end(VertexKind kind) const { return a.kind == kind || b.kind == kind; }
    [[nodiscard]] bool joins(VertexKind kind) const { return a.kind == kind && b.kind == kind; }
    [[nodiscard]] Field at(const char* key) const { return stated.find(key).value_or(stated); }
  };

  /// NVLink does not end in PCIe switches, nor PCIe in NVSwitches or between two GPUs, nor a link of sockets in a GPU.
  static void check_kind(const Link& one) {
    const LinkKind kind = one.type.kind;
    const bool nvlink = kind == LinkKind::nvlink || kind == LinkKind::nvswitch;
    const auto refuse_if = [&](bool wrong, const char* right) {
      one.at("link").fail_if(wrong, "{} between {} and {}", "{3}", one.type.name, one.a.name, one.b.name, right);
    };
    refuse_if(one.has_end(VertexKind::nvswitch) && !nvlink, "a link of kind nvlink, such as nvlink4");
    refuse_if(one.has_end(VertexKind::pcie_switch) && kind != LinkKind::pcie, "a link of kind pcie, such as pcie5-x16");
    refuse_if(one.joins(VertexKind::gpu) && !nvlink,
              "a link of kind nvlink, or a PCIe switch between them: [gpu0..gpu1, plx0]");
    refuse_if(one.has_end(VertexKind::gpu) && kind == LinkKind::socket,
              "a link of kind pcie or nvlink: socket links join processors");
  }

  /// PCIe is a tree, but for sockets and what nothing but sockets hangs on.
  void check_ring(const Link& one) {
    const auto joins_sockets = [&](int part) { return part >= node_.gpus && sockets_alone(node_, part) > 0; };
    if (one.joins(VertexKind::cpu) || joins_sockets(one.link.a) || joins_sockets(one.link.b)) return;
    const int a = root_of(one.link.a), b = root_of(one.link.b);
    one.at("between").fail_if(a == b, "{} and {} are joined already: PCIe in a ring",
                              "a tree, in which one way leads from each GPU and switch to its processor", one.a.name,
                              one.b.name);
    joined_[at_index(a)] = b;
  }
  [[nodiscard]] int root_of(int vertex) const {
    while (joined_[at_index(vertex)] != vertex) vertex = joined_[at_index(vertex)];
    return vertex;
  }

  /// Of one link alone: what virtual machines say of their sockets is no sum of lanes. Its type's name ends in "-x16".
  static void check_lanes(const Link& one) {
    constexpr int most = 136;  // Intel Xeon 6 (R1S) has most of all processors of 2025: of PCIe 5
    const std::size_t at = one.type.name.rfind("-x");
    if (at == std::string::npos) return;
    const int lanes = number_behind(one.type.name.substr(at), "-x").value_or(0) * one.link.count;
    one.at("count").fail_if(lanes > most, "{} lanes of PCIe between {} and {}", "at most {3}, as processors have",
                            lanes, one.a.name, one.b.name, most);
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
  for (const YamlEntry& entry : own ? own->node().entries : std::vector<YamlEntry>()) {
    if (std::ranges::find(node.link_types, entry.key, &LinkType::name) != node.link_types.end()) continue;
    FigureLog unused("unused", *own);  // complains of what is wrong in kinds of links that no link is of
    static_cast<void>(read_link_type(entry.key, own->below(entry), unused));
  }
  return entries;
}

void read_nic_attachment(const Field& nics, const std::optional<Field>& own, Node& node, FigureLog& log) {
  const MappingReader attachment = nics.mapping();
  for (const Field& place : attachment["attached_to"].list_or_one()) {
    for (const std::string& name : expand_range(place)) {
      const std::size_t known = node.vertices.size();
      node.nic_attachment.push_back(vertex_index(name, place, node));
      if (node.vertices.size() > known) place.fail(fmt::format("{} is in no link", name), "a part of the wiring");
      const VertexKind kind = node.vertices[static_cast<std::size_t>(node.nic_attachment.back())].kind;
      place.fail_if(kind != VertexKind::cpu && kind != VertexKind::pcie_switch, "a NIC is attached to {}",
                    "a PCIe switch or a processor: plx0, cpu0", name);
    }
  }
  if (node.nic_attachment.empty()) attachment.fail("attached_to", "no part", "the parts that NICs attach to");
  node.nic_attachment_link = find_link_type(attachment["link"], own, log);
}

void check_wiring(const Node& node, const Field& wiring, const std::vector<Field>& links) {
  WiringCheck(node, links).run();
  require_connection(node, wiring);
}

}  // namespace foretrain
