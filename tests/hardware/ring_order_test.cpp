// Cyclic orders: what a ring collective should follow.
#include "model/hardware/ring_order.hpp"

#include "model/base/error.hpp"
#include "model/hardware/topology.hpp"
#include "tests/catch.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// The links that a ring takes, forward.
std::vector<LinkId> links_of(const Topology& topology, const std::vector<int>& ring) {
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < ring.size(); ++i) topology.append_route(ring[i], ring[(i + 1) % ring.size()], links);
  return links;
}

BytesPerSecond narrowest(const Topology& topology, const std::vector<int>& ring) {
  BytesPerSecond width = BytesPerSecond::infinity();
  for (const LinkId link : links_of(topology, ring)) width = std::min(width, topology.link_bandwidth(link));
  return width;
}

}  // namespace

TEST_CASE("DGX-1: a ring follows the double links") {
  const Topology topology(cluster_of(dgx1_node()));
  const std::vector<int> ring = topology.widest_ring(first_ranks(8));
  CHECK(ring == std::vector<int>{0, 3, 2, 1, 5, 6, 7, 4});
  CHECK(narrowest(topology, ring).value() == Approx(50e9));
}

TEST_CASE("DGX-1: smaller groups take the widest cycle among themselves") {
  const Topology topology(cluster_of(dgx1_node()));
  // 0-4 and 1-5 are double, 0-1 and 4-5 single: the only NVLink cycle of these four.
  CHECK(topology.widest_ring({5, 4, 1, 0}) == std::vector<int>{0, 1, 5, 4});
  CHECK(topology.widest_ring({0, 3}) == std::vector<int>{0, 3});
  // 1 and 6 share no NVLink: no cycle through 0, 1, 6, so the PCIe order counts.
  CHECK(topology.widest_ring({6, 1, 0}) == std::vector<int>{0, 1, 6});
  CHECK(topology.widest_ring({2}) == std::vector<int>{2});
  CHECK(topology.widest_ring({}).empty());
}

TEST_CASE("NVSwitch and PCIe: the natural order") {
  for (const Node& node : {nvswitch_node(), staged_node(), pcie_switch_node()}) {
    const Topology topology(cluster_of(node));
    const std::vector<int> ranks = first_ranks(node.gpus);
    std::vector<int> shuffled(ranks.rbegin(), ranks.rend());
    CHECK(topology.widest_ring(shuffled) == ranks);
  }
}

TEST_CASE("A PCIe ring crosses the socket boundary once each way, however the GPUs are numbered") {
  Node node = bare_node("interleaved", 4, 2);
  node.link_types = {link_type("pcie", LinkKind::pcie, 16.0_GBps, 1.0_us),
                     link_type("qpi", LinkKind::socket, 20.0_GBps, 1.0_us)};
  for (int gpu = 0; gpu < 4; ++gpu) node.links.push_back({gpu, 4 + gpu % 2, 0, 1});  // even ones on socket 0
  node.links.push_back({4, 5, 1, 1});
  const Topology topology(cluster_of(node));
  const std::vector<int> ring = topology.widest_ring(first_ranks(4));
  CHECK(ring == std::vector<int>{0, 2, 1, 3});
  const std::vector<LinkId> links = links_of(topology, ring);
  CHECK(std::ranges::count_if(links, [&](LinkId link) { return topology.link_kind(link) == LinkKind::socket; }) == 2);
}

TEST_CASE("Rings of a later node use that node's links") {
  const Topology topology(cluster_of(dgx1_node(), 2));
  std::vector<int> ranks = first_ranks(8);
  for (int& rank : ranks) rank += 8;
  const std::vector<int> ring = topology.widest_ring(ranks);
  CHECK(ring == std::vector<int>{8, 11, 10, 9, 13, 14, 15, 12});
  CHECK_THROWS_AS(topology.widest_ring({0, 8}), InternalError);
  CHECK_THROWS_AS(topology.widest_ring({0, 16}), InternalError);
}

TEST_CASE("widest_cycle prefers the wider of two cycles and finds none in a path") {
  const auto width = [](double gigabytes) { return BytesPerSecond(gigabytes * 1e9); };
  // 0-1-2-3 in a square of 10 GB/s; the diagonals 0-2 and 1-3 carry 40: the cycle 0-1-3-2 over 10, 40, 10, 40 is no
  // wider than the square, which comes first.
  std::vector<std::vector<BytesPerSecond>> capacity(4, std::vector<BytesPerSecond>(4));
  const auto join = [&](std::size_t a, std::size_t b, double gigabytes) {
    capacity[a][b] = capacity[b][a] = width(gigabytes);
  };
  join(0, 1, 10), join(1, 2, 10), join(2, 3, 10), join(3, 0, 10), join(0, 2, 40), join(1, 3, 40);
  CHECK(widest_cycle(capacity) == std::vector<int>{0, 1, 2, 3});
  join(0, 1, 20), join(2, 3, 20);  // now 0-1-3-2-0 has 20 everywhere
  CHECK(widest_cycle(capacity) == std::vector<int>{0, 1, 3, 2});
  join(3, 0, 0), join(0, 2, 0);  // vertex 0 keeps one neighbour only
  CHECK(widest_cycle(capacity).empty());
  CHECK_THROWS_AS(widest_cycle(std::vector(17, std::vector(17, width(1)))), InternalError);
}
