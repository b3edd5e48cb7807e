// One machine: sockets above, below them PCIe switches, then GPUs and network cards in one row, and below these what
// joins GPUs: NVSwitches as bars, direct links as arcs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "model/base/number.hpp"
#include "model/hardware/wiring_tree.hpp"
#include "reports/figure/plot_topology.hpp"
#include "reports/figure/sketch.hpp"
#include "reports/print/wiring_text.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr double narrowest_part = 17.0, level_step = 50.0, bus_step = 12.0;
// In columns, each of one part of the lowest row.
constexpr double part_share = 0.88, between_switches = 0.35, between_roots = 0.7;
constexpr int left_out = -1;

std::string_view kind_word(VertexKind kind) {
  static constexpr std::array<std::string_view, 5> words = {"gpu", "cpu", "switch", "nvswitch", "nic"};
  return words.at(static_cast<std::size_t>(kind));
}

/// A part that is drawn with what is below it, or an ellipsis for some.
struct Item {
  int part = left_out;
  double columns = 1.0;  ///< that it takes
  double gap = 0.0;      ///< before it, in columns
  std::vector<Item> below = {};
};

/// Chooses what is drawn: below parts of less than this depth, children that are alike are drawn twice and once at
/// their end.
class Shown {
 public:
  Shown(const WiringTree& tree, int shortened_to)
      : tree_(tree), shortened_to_(shortened_to), roots_(items(tree.roots, -1)) {
    for (std::size_t i = 1; i < roots_.size(); ++i) roots_[i].gap = between_roots;
  }

  [[nodiscard]] const std::vector<Item>& roots() const { return roots_; }
  [[nodiscard]] double columns() const { return columns_of(roots_); }

 private:
  [[nodiscard]] const WiringTree::Part& part(int number) const { return tree_.parts[at_index(number)]; }

  static double columns_of(const std::vector<Item>& items) {
    double sum = 0.0;
    for (const Item& item : items) sum += item.columns + item.gap;
    return sum;
  }

  [[nodiscard]] Item whole(int number) const {
    Item item{.part = number, .below = items(part(number).children, part(number).depth)};
    item.columns = std::max(columns_of(item.below), part(number).parent < 0 ? 2.0 : 1.0);
    return item;
  }

  [[nodiscard]] std::vector<Item> items(const std::vector<int>& parts, int depth) const {
    const auto plain = [&](const Item& item) { return item.part == left_out || part(item.part).children.empty(); };
    std::vector<Item> shown;
    const auto add = [&](Item item) {
      if (!shown.empty() && !(plain(shown.back()) && plain(item))) item.gap = between_switches;
      shown.push_back(std::move(item));
    };
    for (std::size_t first = 0, end = 0; first < parts.size(); first = end) {
      while (end < parts.size() && (end == first || tree_.alike(parts[first], parts[end]))) ++end;
      const bool is_cut = depth < shortened_to_ && end - first > 3;
      for (std::size_t i = first; i < end; ++i) {
        if (!is_cut || i < first + 2 || i + 1 == end) add(whole(parts[i]));
        if (is_cut && i == first + 2) add({});
      }
    }
    return shown;
  }

  const WiringTree& tree_;
  int shortened_to_;
  std::vector<Item> roots_;
};

/// As much of the tree as has room.
Shown shown_in(const WiringTree& tree, int width) {
  constexpr int everything = -1, nothing_whole = 8;
  int shortened_to = everything;
  while (shortened_to < nothing_whole && Shown(tree, shortened_to).columns() * narrowest_part > width) ++shortened_to;
  return {tree, shortened_to};
}

/// A drawn part's box, all of one height.
struct Place {
  double left = 0.0, right = 0.0, top = 0.0;
  [[nodiscard]] double middle() const { return (left + right) / 2; }
  [[nodiscard]] double bottom() const { return top + Sketch::box_height; }
};

using Links = std::vector<WiringTree::Link>;

class NodeDrawing {
 public:
  NodeDrawing(const WiringTree& tree, int width)
      : tree_(tree), shown_(shown_in(tree, width)), width_(width), column_(width / shown_.columns()) {
    for (const WiringTree::Part& part : tree_.parts) {
      if (part.kind == VertexKind::pcie_switch) deepest_ = std::max(deepest_, part.depth);
    }
    for (const WiringTree::Link& link : tree_.others) sort_in(link);
  }

  Panel draw() && {
    constexpr double arcs_above = 26.0;
    for (const auto& [name, links] : between_sockets_) socket_top_ += is_bus(links) ? bus_step : arcs_above;
    draw_items(shown_.roots(), 0.0, socket_top_);
    draw_socket_links();
    double bottom = lowest_top() + Sketch::box_height;
    bottom = draw_arcs(bottom);
    bottom = draw_nvswitches(bottom);
    for (const WiringTree::Link& link : rest_) draw_straight(link);
    if (abbreviated_) {
      sketch_.name_boxes("gpu", "GPU");
      sketch_.name_boxes("nic", "network card");
    }
    return std::move(sketch_).panel(width_, static_cast<int>(bottom + Sketch::edge));
  }

 private:
  [[nodiscard]] const WiringTree::Part& part(int number) const { return tree_.parts[at_index(number)]; }
  [[nodiscard]] VertexKind kind(int number) const { return part(number).kind; }
  [[nodiscard]] double lowest_top() const { return socket_top_ + level_step * (deepest_ + 1); }
  [[nodiscard]] bool is_drawn(int number) const { return places_.contains(number); }
  /// A switch that stands in the tree nowhere.
  [[nodiscard]] bool is_free(int number) const {
    return part(number).parent < 0 && std::ranges::find(tree_.roots, number) == tree_.roots.end();
  }

  void sort_in(const WiringTree::Link& link) {
    const auto both = [&](VertexKind of) { return kind(link.a) == of && kind(link.b) == of; };
    const auto one = [&](VertexKind of) { return kind(link.a) == of || kind(link.b) == of; };
    const bool hub = one(VertexKind::cpu) && (is_free(link.a) || is_free(link.b)) && !one(VertexKind::nvswitch);
    if (both(VertexKind::cpu) || hub) {
      between_sockets_[describe(link.wires)].push_back(link);
    } else if (both(VertexKind::gpu)) {
      arcs_.push_back(link);
    } else if (one(VertexKind::nvswitch)) {
      to_nvswitches_.push_back(link);
    } else {
      rest_.push_back(link);
    }
  }

  void draw_items(const std::vector<Item>& items, double x, double ellipsis_top) {
    for (const Item& item : items) {
      x += item.gap * column_;
      if (item.part == left_out) {
        sketch_.text({x + column_ / 2, ellipsis_top + Sketch::box_height / 2}, "…", Pin::middle);
      } else {
        draw_part(item, x);
      }
      x += item.columns * column_;
    }
  }

  void draw_part(const Item& item, double x) {
    const int number = item.part;
    const WiringTree::Part& drawn = part(number);
    const bool low = drawn.kind == VertexKind::gpu || drawn.kind == VertexKind::nic;
    const double span = item.columns * column_, margin = (1.0 - part_share) / 2 * column_;
    const Place place{x + margin, x + span - margin, low ? lowest_top() : socket_top_ + level_step * drawn.depth};
    places_[number] = place;
    if (drawn.parent >= 0 && drawn.above.stated()) {
      sketch_.line(describe(drawn.above),
                   {{place.middle(), places_.at(drawn.parent).bottom()}, {place.middle(), place.top}});
    }
    const bool whole = draw_box(number, place);
    abbreviated_ = abbreviated_ || (low && !whole);
    draw_items(item.below, x, lowest_top());
  }

  bool draw_box(int number, const Place& place) {
    return sketch_.box(kind_word(kind(number)), {place.left, place.top}, place.right - place.left, Sketch::box_height,
                       part(number).name);
  }

  /// Whether each of a group's sockets is linked to each other one, or all to one switch.
  [[nodiscard]] bool is_bus(const Links& links) const {
    std::set<int> ends;
    for (const WiringTree::Link& link : links) {
      if (is_free(link.a) || is_free(link.b)) return true;
      ends.insert({link.a, link.b});
    }
    return 2 * links.size() == ends.size() * (ends.size() - 1);
  }

  void draw_socket_links() {
    double y = socket_top_;
    for (const auto& [name, links] : between_sockets_) {
      if (!is_bus(links)) {
        for (const WiringTree::Link& link : links) draw_arc(link, socket_top_, true);
        continue;
      }
      y -= bus_step;
      std::set<double> middles;
      for (const WiringTree::Link& link : links) {
        for (const int end : {link.a, link.b}) {
          if (is_drawn(end)) middles.insert(places_.at(end).middle());
        }
      }
      for (const double x : middles) sketch_.line(name, {{x, y}, {x, socket_top_}});
      sketch_.line(name, {{*middles.begin(), y}, {*middles.rbegin(), y}});
    }
  }

  /// How far it reaches from there; 0 where one of its ends is not drawn.
  double draw_arc(const WiringTree::Link& link, double from, bool above) {
    constexpr double least = 8.0, share = 0.18, most_above = 22.0, most_below = 90.0;
    if (!is_drawn(link.a) || !is_drawn(link.b)) return 0.0;
    const double a = places_.at(link.a).middle(), b = places_.at(link.b).middle();
    const double left = std::min(a, b), right = std::max(a, b);
    const double height = std::min(least + share * (right - left), above ? most_above : most_below);
    sketch_.arc(describe(link.wires), {left, from}, right, height, above);
    return height;
  }

  double draw_arcs(double bottom) {
    double highest = 0.0;
    for (const WiringTree::Link& link : arcs_) highest = std::max(highest, draw_arc(link, bottom, false));
    return bottom + highest;
  }

  /// Bars one below the other. A GPU's lines to them lie side by side.
  double draw_nvswitches(double bottom) {
    constexpr double room = 24.0, between_bars = 8.0, beside = 3.0;
    std::set<int> switches;
    for (const WiringTree::Link& link : to_nvswitches_) {
      for (const int end : {link.a, link.b}) {
        if (kind(end) == VertexKind::nvswitch) switches.insert(end);
      }
    }
    if (switches.empty()) return bottom;
    double top = bottom + room;
    int bar = 0;
    for (const int number : switches) {
      draw_nvswitch(number, top, beside * (bar++ - number_of(switches) / 2.0 + 0.5));
      top += Sketch::box_height + between_bars;
    }
    return top - between_bars;
  }
  [[nodiscard]] static double number_of(const std::set<int>& parts) { return static_cast<double>(parts.size()); }

  void draw_nvswitch(int number, double top, double aside) {
    Place bar{static_cast<double>(width_), 0.0, top};
    for (const WiringTree::Link& link : to_nvswitches_) {
      if (link.a != number && link.b != number) continue;
      const int other = link.a == number ? link.b : link.a;
      if (!is_drawn(other)) continue;
      const Place& place = places_.at(other);
      bar.left = std::min(bar.left, place.left);
      bar.right = std::max(bar.right, place.right);
      sketch_.line(describe(link.wires), {{place.middle() + aside, place.bottom()}, {place.middle() + aside, top}});
    }
    if (!(bar.left < bar.right)) return;
    places_[number] = bar;
    draw_box(number, bar);
  }

  void draw_straight(const WiringTree::Link& link) {
    if (!is_drawn(link.a) || !is_drawn(link.b)) return;
    const Place &a = places_.at(link.a), &b = places_.at(link.b);
    sketch_.line(describe(link.wires),
                 {{a.middle(), a.top + Sketch::box_height / 2}, {b.middle(), b.top + Sketch::box_height / 2}});
  }

  const WiringTree& tree_;
  Shown shown_;
  int width_;
  double column_;  ///< pixels
  int deepest_ = 0;
  double socket_top_ = Sketch::edge;
  std::map<std::string, Links> between_sockets_;
  Links arcs_, to_nvswitches_, rest_;
  std::map<int, Place> places_;
  Sketch sketch_;
  bool abbreviated_ = false;
};

}  // namespace

Panel node_panel(const Node& node, const Network& network, int width) {
  const WiringTree tree = wiring_tree(node, network);
  return NodeDrawing(tree, width).draw();
}

}  // namespace foretrain
