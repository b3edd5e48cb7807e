#include "model/scenario/hardware/hardware_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "model/base/seen_files.hpp"
#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"

namespace foretrain {

namespace {

LinkType read_link_type(const std::string& name, const Field& field, FigureLog& log) {
  const MappingReader type = field.mapping(keys::link_type);
  LinkType result;
  type.fill(result);
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
  std::vector<std::string> known;
  const auto search = [&](const Field& types) -> std::optional<LinkType> {
    if (!types.is_mapping())
      types.fail("link types are no mapping", "{ name: { kind: pcie, bandwidth: …, latency: … } }");
    for (const YamlEntry& entry : types.node().entries) {
      if (entry.key == name.text()) return read_link_type(entry.key, types.below(entry), log);
      known.push_back(entry.key);
    }
    return std::nullopt;
  };
  if (own) {
    if (auto type = search(*own)) return *type;
  }
  const std::string catalogue = (data_directory() / "hardware" / "links.yaml").string();
  if (look_at(catalogue).is_there()) {
    const Field file(cached_yaml_file(catalogue), "");
    if (auto type = search(file.mapping(keys::links_file)["links"])) return *type;
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

}  // namespace foretrain
