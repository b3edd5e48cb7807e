// Draws machines and fabrics as rows of boxes. A machine has sockets above, then PCIe switches, GPUs with NICs, and
// NVSwitches. A fabric has a row for each level, machines lowest, with labels that count them.
#include "reports/figure/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <numeric>

#include "model/base/number.hpp"
#include "model/hardware/wiring_tree.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"
#include "reports/print/wiring_text.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int screen_width = 760, margins_in_print = 2 * 28, font = 10, narrowest_part = 17;
constexpr double row_step = 62.0, box_height = 22.0, between_boxes = 3.0, widest_box = 110.0, edge = 4.0;
constexpr double words_share = 0.3;  ///< of the width, for the descriptions of a fabric's levels

constexpr int left_out = -1;

/// A box; left_out stands for those that have no room.
struct Part {
  VertexKind kind = VertexKind::cpu;
  std::string name = {};
  int number = left_out;
};
struct Row {
  std::string words;
  std::vector<Part> parts;
};
struct Wire {
  std::string name;
  int from = 0, from_row = 0, to = 0, to_row = 0;  ///< numbers of parts
};
struct Drawing {
  std::vector<Row> rows = {};
  std::vector<Wire> wires = {};
};

/// As many as have room, the first and the last of them.
std::vector<int> shortened(std::vector<int> numbers, std::size_t most) {
  if (numbers.size() <= most) return numbers;
  const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(most / 2);
  const auto last = numbers.end() - static_cast<std::ptrdiff_t>(most - most / 2 - 1);
  *first = left_out;
  numbers.erase(first + 1, last);
  return numbers;
}

// ---- a machine

Drawing drawing_of(const WiringTree& tree, int width) {
  const auto part = [&](int number) -> const WiringTree::Part& { return tree.parts[at_index(number)]; };
  int deepest = 0;
  for (const WiringTree::Part& one : tree.parts) {
    if (one.kind == VertexKind::pcie_switch) deepest = std::max(deepest, one.depth);
  }
  const auto row_of = [&](int number) {
    const VertexKind kind = part(number).kind;
    if (kind == VertexKind::nvswitch) return deepest + 2;
    return kind == VertexKind::gpu || kind == VertexKind::nic ? deepest + 1 : part(number).depth;
  };
  std::vector<std::vector<int>> rows(at_index(deepest + 3));
  const std::function<void(int)> add = [&](int number) {
    rows[at_index(row_of(number))].push_back(number);
    std::ranges::for_each(part(number).children, add);
  };
  std::ranges::for_each(tree.roots, add);
  Drawing drawing;
  for (int number = 0; std::cmp_less(number, tree.parts.size()); ++number) {
    std::vector<int>& row = rows[at_index(row_of(number))];
    if (std::ranges::find(row, number) == row.end()) row.push_back(number);  // parts that are nowhere in the tree
    const auto& [name, kind, parent, above, depth, children] = part(number);
    if (parent >= 0 && above.stated())
      drawing.wires.push_back({describe(above), parent, row_of(parent), number, row_of(number)});
  }
  for (const WiringTree::Link& link : tree.others) {
    drawing.wires.push_back({describe(link.wires), link.a, row_of(link.a), link.b, row_of(link.b)});
  }
  for (const std::vector<int>& numbers : rows) {
    Row& row = drawing.rows.emplace_back();
    for (const int number : shortened(numbers, at_index(std::max(width / narrowest_part, 4)))) {
      row.parts.push_back(number == left_out ? Part() : Part{part(number).kind, part(number).name, number});
    }
  }
  if (drawing.rows.back().parts.empty()) drawing.rows.pop_back();
  return drawing;
}

// ---- a fabric

/// A row of boxes, and how each of the row below hangs on them.
struct Tier {
  VertexKind kind;
  std::string name;  ///< "leaf": its boxes are leaf0, leaf1, …
  int count = 1;
  std::string words;
  std::string below = {};  ///< label of the lines to the row below
  int groups = 1;          ///< each of these is linked to each of those in its group, of which there are so many
};

std::string gigabits(BytesPerSecond rate) {
  const double giga = rate.value() * 8e-9;
  return giga < 9999.0 ? fmt::format("{:.4g} Gbit/s", giga) : fmt::format("{:.3g} Tbit/s", giga / 1000.0);
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

std::string cards_of(const Cluster& cluster) {
  return fmt::format("{} of {} each", counted(cluster.network.nics_per_node, "card"),
                     gigabits(cluster.network.nic_bandwidth));
}

/// The highest first, without the machines.
std::vector<Tier> levels_of(const SingleSwitch& /*shape*/, const Cluster& cluster) {
  return {{VertexKind::pcie_switch, "switch", 1, "one switch that does not block",
           "card: " + gigabits(cluster.network.nic_bandwidth)}};
}

std::vector<Tier> levels_of(const FatTree& tree, const Cluster& cluster) {
  const int cards = cluster.network.nics_per_node, rails = tree.rails ? cards : 1;
  const int leaves = ceil_div(cluster.nodes, tree.nodes_per_leaf) * rails, uplinks = tree.uplinks_of(cluster);
  const BytesPerSecond up =
      cluster.network.nic_bandwidth * number(tree.nodes_per_leaf * (tree.rails ? 1 : cards)) / tree.oversubscription;
  std::vector<Tier> levels;
  int spines = uplinks;
  const int pods = tree.nodes_per_pod > 0 ? ceil_div(cluster.nodes, tree.nodes_per_pod) : 1;
  if (tree.nodes_per_pod > 0) {
    const int leaves_per_pod = tree.nodes_per_pod / tree.nodes_per_leaf * rails;
    const int per_spine = std::max(1, static_cast<int>(std::lround(leaves_per_pod / tree.pod_oversubscription)));
    levels.push_back(
        {VertexKind::nvswitch, "core", spines * per_spine, fmt::format("{} core switches", spines * per_spine),
         fmt::format("spine to core: {} from a pod", gigabits(up * leaves_per_pod / tree.pod_oversubscription))});
    spines *= pods;
  }
  levels.push_back(
      {VertexKind::pcie_switch, "spine", spines,
       fmt::format(
           "{}{}", counted(spines, "spine"),
           tree.nodes_per_pod > 0 ? fmt::format(", {} in each pod of {} machines", uplinks, tree.nodes_per_pod) : ""),
       fmt::format("leaf to spines: {} x {}", uplinks, gigabits(up / uplinks)), pods});
  levels.push_back({VertexKind::pcie_switch, "leaf", leaves,
                    fmt::format("{} {}{}, {} on each", leaves, leaves == 1 ? "leaf" : "leaves",
                                tree.rails ? ", one a rail" : "", counted(tree.nodes_per_leaf, "machine")),
                    "NIC to leaf: " + gigabits(cluster.network.nic_bandwidth), leaves / rails});
  return levels;
}

std::vector<Tier> levels_of(const Dragonfly& fly, const Cluster& /*cluster*/) {
  const int routers = fly.groups * fly.routers_per_group;
  return {{VertexKind::nvswitch, "group", fly.groups,
           fmt::format("{} groups, {} x {} from each router to others", fly.groups, fly.global_links_per_router,
                       gigabits(fly.global_bandwidth)),
           fmt::format("router to router of a group: {}", gigabits(fly.local_bandwidth)), fly.groups},
          {VertexKind::pcie_switch, "router", routers,
           fmt::format("{} routers, {} in a group, {} machines on each", routers, fly.routers_per_group,
                       fly.nodes_per_router),
           "machine to router", routers}};
}

std::vector<Tier> levels_of(const Torus& torus, const Cluster& /*cluster*/) {
  std::string size;
  for (const int length : torus.dimensions) size += fmt::format("{}{}", size.empty() ? "" : " x ", length);
  return {{VertexKind::pcie_switch, "ring", torus.dimensions.front(),
           fmt::format("a torus of {}: {} to each neighbour", size, gigabits(torus.link_bandwidth)),
           "machines of one place along the first dimension", torus.dimensions.front()}};
}

std::vector<Tier> levels_of(const Sites& sites, const Cluster& /*cluster*/) {
  return {{VertexKind::nvswitch, "lines", 1,
           fmt::format("{:.4g} km between any two places", sites.distance_metres / 1000.0),
           "a place's line: " + gigabits(sites.bandwidth)},
          {VertexKind::pcie_switch, "site", sites.sites, fmt::format("{} places", sites.sites), "machine to its place",
           sites.sites}};
}

std::vector<Tier> levels_of(const Cluster& cluster) {
  return std::visit([&](const auto& shape) { return levels_of(shape, cluster); }, cluster.network.fabric.shape);
}

Drawing drawing_of(const Cluster& cluster) {
  constexpr std::size_t most = 4;
  std::vector<Tier> levels = levels_of(cluster);
  levels.push_back(
      {VertexKind::cpu, "node", cluster.nodes, fmt::format("{} machines, {}", cluster.nodes, cards_of(cluster))});
  Drawing drawing;
  for (const Tier& level : levels) {
    std::vector<int> numbers(at_index(level.count));
    std::iota(numbers.begin(), numbers.end(), 0);
    Row& row = drawing.rows.emplace_back(Row{level.words, {}});
    for (const int number : shortened(numbers, most)) {
      const std::string name = level.count == 1 ? level.name : fmt::format("{}{}", level.name, number);
      row.parts.push_back(number == left_out ? Part() : Part{level.kind, name, number});
    }
  }
  for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
    const auto group = [&](int number, int count) { return std::int64_t{1} * number * levels[i].groups / count; };
    for (const Part& above : drawing.rows[i].parts) {
      for (const Part& below : drawing.rows[i + 1].parts) {
        if (group(above.number, levels[i].count) != group(below.number, levels[i + 1].count)) continue;
        drawing.wires.push_back(
            {levels[i].below, above.number, static_cast<int>(i), below.number, static_cast<int>(i) + 1});
      }
    }
  }
  return drawing;
}

// ---- both

/// Light enough for dark letters, as far apart in grey as that leaves room for; in the order of VertexKind.
constexpr std::array<std::string_view, 5> colours = {"#8CCBF0", "#E6BAD4", "#D4D4D4", "#9AD9BE", "#F5EA7A"};

/// A straight line, or an arc of this height, in the series of its name.
void add_line(std::vector<Series>& lines, const std::string& name, Point from, Point to, double height) {
  auto series = std::ranges::find(lines, name, &Series::name);
  if (series == lines.end()) {
    lines.push_back({.name = name, .colour = palette[lines.size() % palette.size()], .line = 1.4});
    series = lines.end() - 1;
  }
  const int steps = height == 0.0 ? 1 : 24;
  for (int i = 0; i <= steps; ++i) {
    const double share = static_cast<double>(i) / steps;
    series->points.push_back({from.x + share * (to.x - from.x),
                              from.y + share * (to.y - from.y) + height * std::sin(std::numbers::pi * share)});
  }
  series->points.push_back({0.0, NAN});
}

class Sheet {
 public:
  Sheet(const Drawing& drawing, int width) : drawing_(drawing), width_(width) {
    if (!drawing.rows.front().words.empty()) left_ = words_share * width;
    if (has_arcs(0)) first_ += room_of_arcs;
  }

  Panel panel() && {
    const int lowest = static_cast<int>(drawing_.rows.size()) - 1;
    for (int row = 0; row <= lowest; ++row) draw(drawing_.rows[at_index(row)], row);
    for (const Wire& wire : drawing_.wires) draw(wire);
    const double height = top(lowest) + box_height + edge + (has_arcs(lowest) ? room_of_arcs : 0.0);
    panel_.width = width_;
    panel_.height = static_cast<int>(height);
    panel_.x = {.low = 0.0, .high = static_cast<double>(width_), .tics = {{0.0, ""}}};
    panel_.y = {.low = -static_cast<double>(panel_.height), .high = 0.0, .tics = {{0.0, ""}}};
    for (std::size_t kind = 0; kind < boxes_.size(); ++kind) {
      boxes_.at(kind).colour = colours.at(kind);
      if (!boxes_.at(kind).boxes.empty()) panel_.series.push_back(boxes_.at(kind));
    }
    return std::move(panel_);
  }

 private:
  static constexpr double room_of_arcs = 40.0;

  [[nodiscard]] bool has_arcs(int row) const {
    return std::ranges::any_of(drawing_.wires, [row](const Wire& w) { return w.from_row == row && w.to_row == row; });
  }
  [[nodiscard]] double top(int row) const { return first_ + row_step * row; }

  void label(Point at, const std::string& text, Pin pin) {
    if (!text.empty()) panel_.labels.push_back({.text = text, .x = at.x, .y = at.y, .pin = pin, .font = font});
  }

  void draw(const Row& row, int place) {
    const double step = (width_ - left_) / std::max(number(row.parts.size()), 1.0), y = -top(place) - box_height / 2;
    const int letters = std::max(static_cast<int>((left_ - edge) / text_width("x", font)), 10);
    label({0.0, y}, wrap(row.words, letters, 0), Pin::left);
    for (std::size_t i = 0; i < row.parts.size(); ++i) {
      const Point middle{left_ + step * (number(i) + 0.5), y};
      if (row.parts[i].number == left_out) {
        label(middle, "…", Pin::middle);
        continue;
      }
      middles_[{place, row.parts[i].number}] = middle;
      draw(row.parts[i], middle, std::min(step - between_boxes, widest_box));
    }
  }

  /// A box with its name, or where that has no room its number.
  void draw(const Part& part, Point middle, double width) {
    Series& kind = boxes_.at(static_cast<std::size_t>(part.kind));
    kind.boxes.push_back(
        {middle.x - width / 2, middle.x + width / 2, middle.y - box_height / 2, middle.y + box_height / 2});
    const auto fits = [&](const std::string& text) { return text_width(text, font) < width; };
    const std::string digits = part.name.substr(std::min(part.name.find_first_of("0123456789"), part.name.size()));
    if (fits(part.name)) return label(middle, part.name, Pin::middle);
    if (fits(digits)) label(middle, digits, Pin::middle);
    if (part.kind == VertexKind::gpu) kind.name = "GPU";
    if (part.kind == VertexKind::nic) kind.name = "NIC";
  }

  /// From edge to edge of two boxes. Within the first row lines are arcs above it, within others below.
  void draw(const Wire& wire) {
    const auto a = middles_.find({wire.from_row, wire.from}), b = middles_.find({wire.to_row, wire.to});
    if (a == middles_.end() || b == middles_.end()) return;
    const bool within = wire.from_row == wire.to_row, is_first = wire.from_row == 0;
    const auto edge_of = [&](Point middle, bool below) {
      return Point{middle.x, middle.y + (below ? -1.0 : 1.0) * box_height / 2};
    };
    const Point from = edge_of(a->second, within ? !is_first : wire.from_row < wire.to_row);
    const Point to = edge_of(b->second, within ? !is_first : wire.to_row < wire.from_row);
    const double arc = std::min(6.0 + 0.18 * std::abs(to.x - from.x), room_of_arcs - box_height / 2);
    add_line(panel_.series, wire.name, from, to, !within ? 0.0 : is_first ? arc : -arc);
  }

  const Drawing& drawing_;
  int width_;
  double left_ = 0.0, first_ = edge;
  Panel panel_{.rows = true, .bare = true, .edge = "#6b6b6b"};
  std::array<Series, colours.size()> boxes_;
  std::map<std::pair<int, int>, Point> middles_;  ///< by row and number
};

Panel panel_of(const Drawing& drawing, int width) { return Sheet(drawing, width).panel(); }

}  // namespace

Panel node_panel(const Node& node, const Network& network, int width) {
  return panel_of(drawing_of(wiring_tree(node, network), width), width);
}

std::string fabric_text(const Cluster& cluster) {
  std::string text;
  for (const Tier& level : levels_of(cluster)) text += fmt::format("  {}; {}\n", level.words, level.below);
  return text + fmt::format("  {} x {}, {}\n", cluster.nodes, cluster.node.name, cards_of(cluster));
}

Figure to_figure(const TopologyPicture& picture) {
  const int print = static_cast<int>(std::lround(picture.width_cm / 2.54 * print_pixels_per_inch));
  const int width = print > 0 ? std::max(print - margins_in_print, 60) : screen_width;
  Figure figure{.columns = 1};
  if (picture.cluster) {
    figure.panels.push_back(panel_of(drawing_of(*picture.cluster), width));
    figure.panels.back().title = picture.title;
  }
  figure.panels.push_back(node_panel(picture.node, picture.network, width));
  Panel& machine = figure.panels.back();
  machine.title = picture.cluster ? "each " + picture.node.name : picture.title;
  const std::string reported = picture.node.description.empty() ? "" : picture.node.description + "; ";
  const int letters = width / text_width("x", 12);
  machine.subtitle = wrap(fmt::format("{}{} x {}; bandwidths of large copies in one direction", reported,
                                      picture.node.gpus, picture.node.gpu.name),
                          letters, 0);
  return figure;
}

std::string to_text(const TopologyPicture& picture) {
  std::string text = picture.title + "\n";
  if (!picture.node.description.empty()) text += picture.node.description + "\n";
  if (picture.cluster) text += "\n" + fabric_text(*picture.cluster);
  return text + "\n" + wiring_text(picture.node, picture.network, 2);
}

}  // namespace foretrain
