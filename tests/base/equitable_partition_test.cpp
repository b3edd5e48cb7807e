// Against refinement by hand: vertices are distinguished by their class and the classes around them, until nothing
// changes.
#include "model/base/equitable_partition.hpp"

#include <ranges>

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

using Classes = std::vector<std::int32_t>;

Classes numbered(const std::vector<std::vector<std::int32_t>>& reported) {
  std::map<std::vector<std::int32_t>, std::int32_t> number;
  Classes classes;
  for (const auto& one : reported)
    classes.push_back(number.emplace(one, static_cast<std::int32_t>(number.size())).first->second);
  return classes;
}

/// Vertices differ if their neighbours do.
Classes told_apart(const ColouredGraph& graph, const Classes& classes) {
  std::vector<std::vector<std::int32_t>> around(classes.size());
  for (const auto& [a, b] : graph.edges) {
    around[static_cast<std::size_t>(a)].push_back(classes[static_cast<std::size_t>(b)]);
    around[static_cast<std::size_t>(b)].push_back(classes[static_cast<std::size_t>(a)]);
  }
  for (std::size_t i = 0; i < classes.size(); ++i) {
    std::ranges::sort(around[i]);
    around[i].insert(around[i].begin(), classes[i]);
  }
  return numbered(around);
}

/// The partition of each round, from the colours to the one that nothing tells further apart.
std::vector<Classes> rounds_of(const ColouredGraph& graph) {
  std::vector<std::vector<std::int32_t>> colours;
  for (const std::int32_t colour : graph.colour) colours.push_back({colour});
  std::vector<Classes> rounds = {numbered(colours)};
  for (;;) {
    const Classes next = told_apart(graph, rounds.back());
    if (next == rounds.back()) return rounds;
    rounds.push_back(next);
  }
}

ColouredGraph random_coloured_graph(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  ColouredGraph graph;
  const int vertices = 1 + below(24), colours = 1 + below(3);
  for (int i = 0; i < vertices; ++i) CHECK(graph.add_vertex(below(colours)) == i);
  for (int i = below(2 * vertices); i > 0; --i) graph.edges.emplace_back(below(vertices), below(vertices));
  return graph;
}

std::size_t classes_among(const Classes& classes, std::size_t first) {
  Classes seen(classes.begin(), classes.begin() + static_cast<std::ptrdiff_t>(first));
  std::ranges::sort(seen);
  return static_cast<std::size_t>(std::ranges::unique(seen).begin() - seen.begin());
}

}  // namespace

TEST_CASE("The coarsest partition is what is left when nothing tells vertices further apart") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    INFO(seed);
    const ColouredGraph graph = random_coloured_graph(seed);
    REQUIRE(coarsest_equitable_partition(graph, Neighbours(graph)) == rounds_of(graph).back());
  }
  CHECK(coarsest_equitable_partition({}, Neighbours({})).empty());
  // A path of five: its ends, what is beside them, and its middle.
  const ColouredGraph path{{0, 0, 0, 0, 0}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}};
  CHECK(coarsest_equitable_partition(path, Neighbours(path)) == Classes{0, 1, 2, 1, 0});
}

TEST_CASE("A partition that is limited stops before the round that makes too many classes of the first vertices") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const ColouredGraph graph = random_coloured_graph(seed);
    const std::vector<Classes> rounds = rounds_of(graph);
    const std::size_t first = (graph.colour.size() + 1) / 2;
    for (std::size_t most = classes_among(rounds.front(), first); most <= first; ++most) {
      INFO(seed << ", at most " << most);
      std::size_t last = 0;
      while (last + 1 < rounds.size() && classes_among(rounds[last + 1], first) <= most) ++last;
      const LimitedPartition limited = limited_partition(graph, Neighbours(graph), first, most);
      REQUIRE(limited.class_of == rounds[last]);
      REQUIRE(limited.complete == (last + 1 == rounds.size()));
      // The same vertices behind as many others, each of its own colour and alone.
      ColouredGraph behind;
      const auto others = static_cast<std::int32_t>(graph.colour.size());
      for (std::int32_t i = 0; i < others; ++i) behind.add_vertex(3 + i);
      for (const std::int32_t colour : graph.colour) behind.add_vertex(colour);
      for (const auto& [a, b] : graph.edges) behind.edges.emplace_back(others + a, others + b);
      const LimitedPartition shifted = limited_partition(behind, Neighbours(behind), first, most, graph.colour.size());
      REQUIRE(std::ranges::equal(shifted.class_of | std::views::drop(others), limited.class_of, {},
                                 [&](std::int32_t id) { return id - others; }));
    }
  }
}
