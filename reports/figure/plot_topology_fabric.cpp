// The fabric behind the cards: a row a level, machines lowest, each with the words that say how many there are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/number.hpp"
#include "reports/figure/plot_topology.hpp"
#include "reports/figure/sketch.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr double row_step = 62.0, between_boxes = 6.0, words_share = 0.3;
constexpr std::size_t most_boxes = 4;  ///< of a row; where there are more, two, and the last

/// A row of boxes, and how each of the row below hangs on them.
struct Row {
  std::string_view kind;
  std::string name;  ///< "leaf": its boxes are leaf0, leaf1, …
  int count = 1;
  std::string words;
  std::string below = {};  ///< what the lines to the row below are; empty: none
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

/// The highest first; machines, which are in all, are added by the caller.
std::vector<Row> rows_of(const SingleSwitch& /*shape*/, const Cluster& cluster) {
  return {
      {"switch", "switch", 1, "one switch that does not block", "card: " + gigabits(cluster.network.nic_bandwidth)}};
}

std::vector<Row> rows_of(const FatTree& tree, const Cluster& cluster) {
  const int cards = cluster.network.nics_per_node, rails = tree.rails ? cards : 1;
  const int leaves = ceil_div(cluster.nodes, tree.nodes_per_leaf) * rails, uplinks = tree.uplinks_of(cluster);
  const BytesPerSecond up =
      cluster.network.nic_bandwidth * number(tree.nodes_per_leaf * (tree.rails ? 1 : cards)) / tree.oversubscription;
  std::vector<Row> rows;
  int spines = uplinks;
  const int pods = tree.nodes_per_pod > 0 ? ceil_div(cluster.nodes, tree.nodes_per_pod) : 1;
  if (tree.nodes_per_pod > 0) {
    const int leaves_per_pod = tree.nodes_per_pod / tree.nodes_per_leaf * rails;
    const int per_spine = std::max(1, static_cast<int>(std::lround(leaves_per_pod / tree.pod_oversubscription)));
    rows.push_back(
        {"nvswitch", "core", spines * per_spine, fmt::format("{} core switches", spines * per_spine),
         fmt::format("spine to core: {} from a pod", gigabits(up * leaves_per_pod / tree.pod_oversubscription))});
    spines *= pods;
  }
  rows.push_back(
      {"switch", "spine", spines,
       fmt::format(
           "{}{}", counted(spines, "spine"),
           tree.nodes_per_pod > 0 ? fmt::format(", {} in each pod of {} machines", uplinks, tree.nodes_per_pod) : ""),
       fmt::format("leaf to spines: {} x {}", uplinks, gigabits(up / uplinks)), pods});
  rows.push_back({"switch", "leaf", leaves,
                  fmt::format("{} {}{}, {} on each", leaves, leaves == 1 ? "leaf" : "leaves",
                              tree.rails ? ", one a rail" : "", counted(tree.nodes_per_leaf, "machine")),
                  "card to leaf: " + gigabits(cluster.network.nic_bandwidth), leaves / rails});
  return rows;
}

std::vector<Row> rows_of(const Dragonfly& fly, const Cluster& /*cluster*/) {
  const int routers = fly.groups * fly.routers_per_group;
  return {{"nvswitch", "group", fly.groups,
           fmt::format("{} groups, {} x {} from each router to others", fly.groups, fly.global_links_per_router,
                       gigabits(fly.global_bandwidth)),
           fmt::format("router to router of a group: {}", gigabits(fly.local_bandwidth)), fly.groups},
          {"switch", "router", routers,
           fmt::format("{} routers, {} in a group, {} machines on each", routers, fly.routers_per_group,
                       fly.nodes_per_router),
           "machine to router", routers}};
}

std::vector<Row> rows_of(const Torus& torus, const Cluster& /*cluster*/) {
  std::string size;
  for (const int length : torus.dimensions) size += fmt::format("{}{}", size.empty() ? "" : " x ", length);
  return {{"switch", "ring", torus.dimensions.front(),
           fmt::format("a torus of {}: {} to each neighbour", size, gigabits(torus.link_bandwidth)),
           "machines of one place along the first dimension", torus.dimensions.front()}};
}

std::vector<Row> rows_of(const Sites& sites, const Cluster& /*cluster*/) {
  return {{"nvswitch", "lines", 1, fmt::format("{:.4g} km between any two places", sites.distance_metres / 1000.0),
           "a place's line: " + gigabits(sites.bandwidth)},
          {"switch", "site", sites.sites, fmt::format("{} places", sites.sites), "machine to its place", sites.sites}};
}

/// Numbers of a row that are drawn; -1 stands for those left out.
std::vector<int> drawn_of(int count) {
  std::vector<int> numbers;
  if (at_index(count) > most_boxes) return {0, 1, -1, count - 1};
  for (int i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

class FabricDrawing {
 public:
  FabricDrawing(std::vector<Row> rows, int width) : rows_(std::move(rows)), width_(width), left_(words_share * width) {}

  Panel draw() && {
    for (std::size_t row = 0; row + 1 < rows_.size(); ++row) draw_links(row);
    for (std::size_t row = 0; row < rows_.size(); ++row) draw_boxes(row);
    const double height = top(rows_.size() - 1) + Sketch::box_height + Sketch::edge;
    return std::move(sketch_).panel(width_, static_cast<int>(height));
  }

 private:
  [[nodiscard]] double top(std::size_t row) const { return Sketch::edge + 12.0 + row_step * static_cast<double>(row); }
  [[nodiscard]] double step(std::size_t row) const {
    return (width_ - left_) / static_cast<double>(drawn_of(rows_[row].count).size());
  }
  [[nodiscard]] double middle(std::size_t row, std::size_t place) const {
    return left_ + step(row) * (static_cast<double>(place) + 0.5);
  }

  void draw_boxes(std::size_t row) {
    const std::vector<int> numbers = drawn_of(rows_[row].count);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] < 0) {
        sketch_.text({middle(row, i), top(row) + Sketch::box_height / 2}, "…", Pin::middle);
        continue;
      }
      const std::string name =
          rows_[row].count == 1 ? rows_[row].name : fmt::format("{}{}", rows_[row].name, numbers[i]);
      const double width = std::min(step(row) - between_boxes, 110.0);
      sketch_.box(rows_[row].kind, {middle(row, i) - width / 2, top(row)}, width, Sketch::box_height, name);
    }
    const int letters = static_cast<int>((left_ - 4.0) / (text_width("x", Sketch::font)));
    sketch_.text({0.0, top(row) + Sketch::box_height / 2}, wrap(rows_[row].words, std::max(letters, 10), 0), Pin::left);
  }

  /// From a row's boxes to those of the row below.
  void draw_links(std::size_t row) {
    if (rows_[row].below.empty()) return;
    const std::vector<int> above = drawn_of(rows_[row].count), below = drawn_of(rows_[row + 1].count);
    for (std::size_t a = 0; a < above.size(); ++a) {
      for (std::size_t b = 0; b < below.size(); ++b) {
        if (above[a] < 0 || below[b] < 0) continue;
        const auto group = [&](int number, int count) { return std::int64_t{1} * number * rows_[row].groups / count; };
        if (group(above[a], rows_[row].count) != group(below[b], rows_[row + 1].count)) continue;
        sketch_.line(rows_[row].below,
                     {{middle(row, a), top(row) + Sketch::box_height}, {middle(row + 1, b), top(row + 1)}});
      }
    }
  }

  std::vector<Row> rows_;
  int width_;
  double left_;
  Sketch sketch_;
};

}  // namespace

Panel fabric_panel(const Cluster& cluster, int width) {
  std::vector<Row> rows =
      std::visit([&](const auto& shape) { return rows_of(shape, cluster); }, cluster.network.fabric.shape);
  rows.push_back({"cpu", "node", cluster.nodes, fmt::format("{} machines, {}", cluster.nodes, cards_of(cluster))});
  return FabricDrawing(std::move(rows), width).draw();
}

std::string fabric_text(const Cluster& cluster) {
  const std::vector<Row> rows =
      std::visit([&](const auto& shape) { return rows_of(shape, cluster); }, cluster.network.fabric.shape);
  std::string text;
  for (const Row& row : rows) text += fmt::format("  {}{}\n", row.words, row.below.empty() ? "" : "; " + row.below);
  return text + fmt::format("  {} x {}, {}\n", cluster.nodes, cluster.node.name, cards_of(cluster));
}

}  // namespace foretrain
