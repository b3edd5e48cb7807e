// R12: networks as data. Every expectation is worked out from the formula or the datasheet before it is asserted, and
// holds for every executor.
#include "model/base/error.hpp"
#include "tests/sim/predicted.hpp"

using namespace foretrain;
using namespace foretrain::test;

TEST_CASE("R12: 160 MB in a ring of eight machines over Ethernet of 1 to 800 Gbit/s") {
  // 14 steps of 20 MB. TCP with 1500-byte packets: 20 MB are 13,813 packets of 1448 B with 90 B each around them,
  // 21.243 MB at 125 MB/s: 169.95 ms; and 30 us a step.
  expect_on_wires("network-ethernet-1g", 14 * ((20e6 + 13813 * 90.0) / 125e6 * 1e3 + 0.03), 1e-4);
  // Jumbo frames: 2236 packets of 8948 B.
  expect_on_wires("network-ethernet-10g", 14 * ((20e6 + 2236 * 90.0) / 1250e6 * 1e3 + 0.03), 1e-4);
  // RoCE: 4883 packets of 4096 B with 82 B around them, and 16 B once; 5 us a step.
  expect_on_wires("network-ethernet-100g", 14 * ((20e6 + 4883 * 82.0 + 16) / 12.5e9 * 1e3 + 0.005), 1e-4);
  // The GPU's own slot, 55 GB/s, is narrower than the card's 98 GB/s: the headers do not matter there, nearly.
  expect_on_wires("network-ethernet-800g", 14 * (20e6 / 55e9 * 1e3 + 0.005), 1e-3);
  // InfiniBand NDR: 50 GB/s of 4122-byte packets, less than the slot's 55 GB/s.
  expect_on_wires("network-infiniband", 14 * ((20e6 + 4883 * 26.0 + 16) / 50e9 * 1e3 + 0.005), 1e-4);
}

TEST_CASE("R12: small packets are mostly headers") {
  // 15,625 datagrams of 64 B take 130 B each; 691 packets of TCP 90 B beside the payload; 30 us.
  expect_on_wires("network-packets-udp-64b", 15625 * 130 / 125e6 * 1e3 + 0.03, 1e-4);
  expect_on_wires("network-packets-tcp", (1e6 + 691 * 90.0) / 125e6 * 1e3 + 0.03, 1e-4);
  // A single message of 64 B: 154 B over TCP, 1.23 us after the 30 us.
  const Overrides small = {"workload.collective.size=64 B"};
  expect_on_wires("network-packets-tcp", 154 / 125e6 * 1e3 + 0.03, 1e-4, small);
  // And with the automatic algorithm, whose fixed costs are the same with and without the transport's headers.
  const Overrides automatic = {"workload.collective.algorithm=auto", "workload.collective.size=6400 B"};
  Overrides large_messages = automatic;
  large_messages.emplace_back("cluster.network.transport.message=1400 B");
  CHECK(on_wires("network-packets-udp-64b", Fidelity::flows, automatic) >
        on_wires("network-packets-udp-64b", Fidelity::flows, large_messages) + 6400 * 0.9 / 125e6 * 1e3);
}

TEST_CASE("R12: 10,000 km and back take 100 ms") {
  // 2 · 10^7 m / (2/3 · 299,792,458 m/s) = 100.069 ms, and twice the 30 us of the hosts.
  expect_on_wires("network-long-distance-10000km", 100.0692 + 0.06, 1e-4);
}

TEST_CASE("R12: over a long line TCP waits for its window, and many connections carry more") {
  const double round_trip = 2 * (1e7 / (299792458.0 * 2 / 3) + 30e-6);
  const double one_way = round_trip / 2;
  // 64 KiB per round trip; 1 GB at that rate, and the way of the last byte.
  expect_on_wires("network-long-distance-tcp-window", (1e9 / (65536 / round_trip) + one_way) * 1e3, 1e-4);
  // 64 times MSS / (RTT · sqrt(2p/3)), below the line's 12.4 GB/s.
  const double rate = 64 * 8948 / (round_trip * std::sqrt(2e-6 / 3));
  CHECK(rate < 12.3e9);
  expect_on_wires("network-long-distance-many-streams", (1e9 / rate + one_way) * 1e3, 1e-4);
  // 200 connections would carry more than the line: 1 GB at 12.5 GB/s · 8948/9038.
  expect_on_wires("network-long-distance-many-streams", (1e9 / (12.5e9 * 8948 / 9038) + one_way) * 1e3, 1e-4,
                  {"cluster.network.transport.streams=200"});
}

TEST_CASE("R12: a ring over two sites crosses the long line as often as a chunk does, not at every step") {
  // Eight machines, four a site: of the ring's 14 hops that a chunk makes, one in four is a long one. The most that 14
  // consecutive hops of the cycle of eight contain is four. 4 · 50.03 ms, not 14 ·.
  const Overrides eight = {"cluster.nodes=8", "workload.collective.ranks=8"};
  const double hop = 1e7 / (299792458.0 * 2 / 3) * 1e3;
  expect_on_wires("network-long-distance-10000km", 4 * hop + 14 * 0.03, 1e-4, eight);
}

TEST_CASE("R12: oversubscribed leaves") {
  // 16 ranks behind a leaf send 48 of 64 parts of 1 GB over 16 · 23.25 / 4 = 93 GB/s.
  expect_on_wires("network-oversubscribed", 16 * 48.0 / 64.0 / 93.0 * 1e3, 1e-3);
  // Without oversubscription a card's 56 of 64 parts at 23.25 GB/s are the limit.
  expect_on_wires("network-oversubscribed", 56.0 / 64.0 / 23.25 * 1e3, 1e-3,
                  {"cluster.network.fabric.oversubscription=1"});
}

TEST_CASE("R12: rails keep rings off the spine") {
  // Inside a node reduce-scatter and all-gather: 2 · 7/8 GB at 276 GB/s. Between nodes eight rings of eight nodes, each
  // with 125 MB: 2 · 7/8 · 125 MB at 23.25 GB/s on rails; a plain leaf's eight share 8 · 23.25 / 4.
  const double inside = 2 * 7.0 / 8 / 276 * 1e3, between = 2 * 7.0 / 8 * 0.125 / 23.25 * 1e3;
  expect_on_wires("network-rail-optimised-fat-tree", inside + between, 0.01);
  expect_on_wires("network-plain-fat-tree", inside + 4 * between, 0.01);
  // All-to-all: of 64 parts a card sends 56 out of its node, 49 of them to other rails; eight cards share a leaf's
  // 46.5 GB/s upward.
  const Overrides exchange = {"workload.collective.operation=all_to_all", "workload.collective.algorithm=ring"};
  expect_on_wires("network-rail-optimised-fat-tree", 8 * 49.0 / 64 / 46.5 * 1e3, 0.01, exchange);
  expect_on_wires("network-plain-fat-tree", 8 * 56.0 / 64 / 46.5 * 1e3, 0.01, exchange);
}

TEST_CASE("R12: torus and dragonfly") {
  // Torus: in a dimension of four a message makes one hop on average, and there are two links: half of 100 MB over
  // each of 3.125 GB/s. The longest way has six hops of 0.5 us, after 5 us.
  expect_on_wires("network-torus", 0.5 * 0.1 / 3.125 * 1e3 + 0.008, 1e-4);
  // A ring in the order of the nodes has neighbours one hop apart, two where a row ends.
  const Overrides ring = {"workload.collective.operation=all_reduce"};
  CHECK(on_wires("network-torus", Fidelity::flows, ring) < 2 * 0.1 / 3.125 * 1e3 * 1.05 + 126 * 0.008);
  // Dragonfly: 16 · 16 parts of 100 MB / 64 over one global link of 12.5 GB/s; four routers on the longest way.
  expect_on_wires("network-dragonfly", 256.0 / 64 * 0.1 / 12.5 * 1e3 + 0.007, 1e-4);
}

TEST_CASE("R12: without GPUDirect data is staged through host memory") {
  // 2 · 7/8 GB at 276 GB/s inside the nodes. Between them 2 · 62.5 MB a GPU: at the card's 23.25 GB/s, or a quarter of
  // the 26 GB/s between a PCIe switch and its socket, which two GPUs' data cross outwards and two cards' inwards.
  const double inside = 2 * 7.0 / 8 / 276 * 1e3;
  expect_on_wires("network-gpu-direct", inside + 0.125 / 23.25 * 1e3, 0.01);
  expect_on_wires("network-staged", inside + 0.125 / 6.5 * 1e3, 0.01);
}

TEST_CASE("R12: slow cards and failed ones hold everybody up") {
  // 10 of 100 Gbit/s at one machine: its 14 steps take ten times as long.
  expect_on_wires("network-slow-link", 14 * ((20e6 + 4883 * 82.0 + 16) / 1.25e9 * 1e3 + 0.005), 1e-4);
  // 2 · 3/4 · 125 MB a rail; two GPUs share one card of 23.25 GB/s.
  const double inside = 2 * 7.0 / 8 / 276 * 1e3, rail = 2 * 3.0 / 4 * 0.125 / 23.25 * 1e3;
  expect_on_wires("network-failed-rail", inside + 2 * rail, 0.01);
  expect_on_wires("network-failed-rail", inside + rail, 0.01, {"cluster.faults=[]"});
}

TEST_CASE("R12: connections that TCP limits share a line with others") {
  const double round_trip = 2 * (1e7 / (299792458.0 * 2 / 3) + 30e-6);
  const double limit = 64 * 8948 / (round_trip * std::sqrt(2e-6 / 3));
  const double line = 12.5e9 * 8948 / 9038;
  const auto with_background = [](const char* rate) -> Overrides {
    return {std::string("background=[{ from: node0, to: node1, rate: ") + rate + " }]"};
  };
  // 1 GB/s of the line's 12.4 leaves more than the connections' 7 GB/s.
  expect_on_wires("network-long-distance-many-streams", (1e9 / limit + round_trip / 2) * 1e3, 1e-4,
                  with_background("1 GB/s"));
  // Others that want all they can get have connections as narrow: 7 and 7 are more than the line, so it is halved.
  CHECK(2 * limit > line);
  expect_on_wires("network-long-distance-many-streams", (1e9 / (line / 2) + round_trip / 2) * 1e3, 1e-4,
                  with_background("100 GB/s"));
}

TEST_CASE("R12: few TCP connections do not fill a server's card") {
  // Four connections of 5 Gbit/s are less than 0.85 · 25 Gbit/s, eight are more: four workers take as long as two.
  const auto seconds = [](int workers) {
    const Overrides pulls_last = {"plan.sync.barrier=true", "cluster.nodes=" + std::to_string(workers + 1)};
    return predict(load_scenario("servers-one-server", pulls_last), Fidelity::flows).time().value();
  };
  const double two = seconds(2), four = seconds(4);
  CHECK(two > 4.0 * 25.557032e6 / (5e9 / 8.0));
  CHECK(four == Approx(two).epsilon(0.02));
  CHECK(seconds(8) > 1.3 * four);
}
