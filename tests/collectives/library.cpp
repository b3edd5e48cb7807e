// The losses of NCCL's kernels: one set for `auto` and for every named algorithm, by the version of the library.
#include "model/collectives/library.hpp"
#include "model/base/error.hpp"
#include "model/collectives/contention.hpp"
#include "model/collectives/library_choice.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/library_of_today.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/collectives/rows.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

TEST_CASE("auto is never slower than a named algorithm: all carry one set of losses") {
  Cluster sharp = nccl_cluster(hopper_node(), 4);
  sharp.network.in_network_reduction = true;
  const std::vector<Cluster> clusters = {nccl_cluster(nvswitch_node()),     nccl_cluster(nvswitch_node(), 4),
                                         nccl_cluster(hopper_node()),       nccl_cluster(hopper_node(), 4),
                                         nccl_cluster(dgx1_node()),         nccl_cluster(dgx1_node(), 3),
                                         nccl_cluster(pcie_switch_node(8)), sharp};
  for (const Cluster& cluster : clusters) {
    const Topology topology(cluster);
    for (const AlgorithmRow& row : algorithm_table()) {
      for (const Bytes size : {8.0_B, 64.0_KB, 1.0_MB, 32.0_MB, 1.0_GB}) {
        CollectiveCall call = automatic_call(row.operation, size, {iota(topology.gpus())});
        const LoweredCollective automatic = by_nccl(call, topology);
        const Seconds best = uncontended_time(automatic, topology);
        // If NCCL expects its switches to be faster it takes them, also when rings would be: by a third at 1 MB.
        const double most = automatic.chosen_algorithm == "nvls" ? 1.35 : 1.001;
        call.algorithm = row.algorithm;
        call.placement = ServerPlacement::gpu;
        LoweredCollective named;
        try {
          named = by_nccl(call, topology);
        } catch (const ImpossiblePlan&) {
          continue;  // the hardware cannot carry it out
        }
        INFO(name(row.algorithm) << ", " << name(row.operation) << " of " << size.value() << " B on " << cluster.nodes
                                 << " " << cluster.node.name);
        CHECK(best.value() <= uncontended_time(named, topology).value() * most);
      }
    }
  }
}

TEST_CASE("what NCCL has of a name is NCCL's, whatever may slow one of its links") {
  // A ring of a user's own would leave node 0 by one card, past the slow one; NCCL's rings use all cards and wait for
  // it. Its trees are the double binary ones between nodes, with chains inside them.
  Cluster cluster = nccl_cluster(nvswitch_node(), 2);
  cluster.faults.push_back({.node = 0, .card = 1, .link = {}, .share = 0.17});
  const Topology topology(cluster);
  using enum CollectiveOperation;
  for (const auto& [operation, named] :
       {std::pair(reduce_scatter, SyncAlgorithm::ring), std::pair(all_gather, SyncAlgorithm::multi_ring),
        std::pair(broadcast, SyncAlgorithm::ring)}) {
    CollectiveCall call = automatic_call(operation, 1.0_GB, {iota(16)});
    const LoweredCollective automatic = by_nccl(call, topology);
    REQUIRE(automatic.chosen_algorithm == "ring/Simple");
    call.algorithm = named;
    const LoweredCollective by_name = by_nccl(call, topology);
    CHECK(by_name.chosen_algorithm == name(named));
    CHECK(uncontended_time(by_name, topology).value() == uncontended_time(automatic, topology).value());
  }
  CollectiveCall call = automatic_call(all_reduce, 8.0_KB, {iota(16)});
  const double automatic = nccl_time(call, topology).value();
  REQUIRE(by_nccl(call, topology).chosen_algorithm.starts_with("tree/"));
  call.algorithm = SyncAlgorithm::double_tree;
  CHECK(nccl_time(call, topology).value() == automatic);
}

TEST_CASE("trees are tried from NCCL 2.4 on, gathers in the network's switches from 2.20 on") {
  // 64 KB over sixteen nodes: 2 · 4 levels of a tree against 2 · 15 hops between nodes of a ring.
  Cluster cluster = nccl_cluster(nvswitch_node(), 16);
  const auto chosen = [&](CollectiveOperation operation, NcclVersion version) {
    cluster.nccl = version;
    const CollectiveCall call = automatic_call(operation, 64.0_KB, {iota(128)});
    return by_nccl(call, Topology(cluster)).chosen_algorithm;
  };
  CHECK(chosen(CollectiveOperation::all_reduce, {2, 4}).starts_with("tree/"));
  CHECK(chosen(CollectiveOperation::all_reduce, {2, 3}).starts_with("ring/"));
  cluster.network.in_network_reduction = true;
  CHECK(chosen(CollectiveOperation::all_gather, {2, 20}) == "collnet");
  CHECK(chosen(CollectiveOperation::all_gather, {2, 19}).starts_with("ring/"));
}

TEST_CASE("without a library the fastest may be the plain ring") {
  // Seven ranks on three nodes of four: rings that leave each node from every place in turn weigh uneven nodes
  // unevenly.
  Cluster cluster = cluster_of(pcie_switch_node(4), 3);
  cluster.network.nics_per_node = 1;
  cluster.network.nic_bandwidth = 25.0_GBps;
  cluster.nccl = no_nccl;
  const Topology topology(cluster);
  CollectiveCall call = automatic_call(CollectiveOperation::reduce_scatter, 4.0_GB, {iota(7)});
  const Seconds automatic = nccl_time(call, topology);
  for (const SyncAlgorithm rings : {SyncAlgorithm::ring, SyncAlgorithm::multi_ring}) {
    call.algorithm = rings;
    CHECK(automatic <= nccl_time(call, topology));
  }
}

TEST_CASE("switches of the network that reduce are tried where the description says so") {
  // Four nodes, eight cards of 25 GB/s: a ring sends 2 · 31/32 of 4 GB over 200 GB/s, 38.8 ms. Through the switches
  // every card sends an eighth once, 4 GB over 200 GB/s, 20 ms, at 0.97 of the cards.
  Cluster cluster = nccl_cluster(nvswitch_node(), 4);
  const CollectiveCall call = automatic_call(CollectiveOperation::all_reduce, 4.0_GB, {iota(32)});
  const auto lowered = [&] { return by_nccl(call, Topology(cluster)); };
  CHECK(lowered().chosen_algorithm == "ring/Simple");
  cluster.network.in_network_reduction = true;
  // Inside the nodes 2 · 7/8 of 4 GB at 0.9 of 300 GB/s, 25.9 ms, is now what takes longest.
  CHECK(lowered().chosen_algorithm == "collnet");
  CHECK(uncontended_time(lowered(), Topology(cluster)).value() == Approx(0.0259).epsilon(0.01));
  cluster.nccl = {2, 4};  // before network collectives
  CHECK(lowered().chosen_algorithm == "ring/Simple");
}

TEST_CASE("messages to another rail leave through the GPU on it, from NCCL 2.12 on") {
  // Two nodes a leaf group of rails, spine 8 times too thin, 8 cards of 25 GB/s a node: rails carry 7/8 more.
  Cluster cluster = nccl_cluster(nvswitch_node(), 2);
  cluster.network.fabric.shape = FatTree{2, 0, 8.0, 1.0, true};
  const CollectiveCall call = automatic_call(CollectiveOperation::all_to_all, 1.0_GB, {iota(16)});
  const auto time = [&](NcclVersion version) {
    cluster.nccl = version;
    const Topology topology(cluster);
    return nccl_time(call, topology).value();
  };
  // Half of 1 GB leaves each GPU by its card: 20 ms at 25 GB/s, 0.97 of it. Directly 7/8 of that cross the spine.
  CHECK(time({2, 12}) == Approx(0.0206).epsilon(0.02));
  CHECK(time({2, 11}) > 2.0 * time({2, 12}));
}

TEST_CASE("an exchange between nodes waits for set-ups of the peers beyond the seven that are served at once") {
  Calibration calibration = load_default_calibration();
  calibration.collective.peer_us = 8.0;
  Cluster cluster = nccl_cluster(hopper_node(), 5);
  const auto set_ups = [&](Bytes message, int peers) {
    const Topology topology(cluster);
    const CollectiveCall call = automatic_call(CollectiveOperation::all_to_all, 1.0_MB, {iota(topology.gpus())});
    return Library(call, topology, calibration).exchange_between_nodes(message, peers).value() * 1e6 / 8.0;
  };
  const Bytes piece(512.0 * 1024.0);
  CHECK(set_ups(piece, 7) == 0.0);
  CHECK(set_ups(piece, 39) == Approx(32.0));
  CHECK(set_ups(piece * 4.0, 39) == Approx(32.0));
  CHECK(set_ups(piece / 2.0, 39) == Approx(16.0));
  CHECK(set_ups(8.0_B, 39) == Approx(4.0));  // an eighth of a set-up each, in whole batches
  cluster.nccl = NcclVersion{2, 8};
  CHECK(set_ups(piece, 39) == Approx(7.0 + 4.0));
}

TEST_CASE("chunks of trees under LL128 are halved until enough of them follow each other") {
  // Ten nodes of eight A100 with a card each: 16 channels. 1 + 3 + 0.8 = 4.8 steps want 4.8 · 64 / 8 = 38.4 chunks in a
  // channel while these are above 128 KiB, and 9.6 while they are above 32 KiB.
  const Topology topology(nccl_cluster(nvswitch_node(), 10));
  const auto chunk = [&](LibraryProtocolKind kind, double bytes) {
    const CollectiveCall call = automatic_call(CollectiveOperation::all_reduce, 16.0 * Bytes(bytes), {iota(80)});
    return Library(call, topology, published()).pieces(kind).value() / 16.0;
  };
  using enum LibraryProtocolKind;
  CHECK(chunk(ll128, 40.0 * 614400.0) == 614400.0);
  CHECK(chunk(ll128, 40.0 * 307200.0) == 307200.0);
  CHECK(chunk(ll128, 20.0 * 76800.0) == 76800.0);
  CHECK(chunk(ll128, 9.0 * 76800.0) == 38400.0);
  CHECK(chunk(ll128, 8.0 * 19200.0) == 19200.0);  // of 8 instead of 9.6: no smaller ones
  CHECK(chunk(simple, 1e9) == 512.0 * 1024.0);
  CHECK(chunk(ll, 1e9) == 32.0 * 1024.0);
  CHECK(chunk(ll, 1000.0) == 1000.0);  // no more than there is
}

TEST_CASE("a broadcast's pieces pass one node after the other") {
  // Ten nodes, eight cards of 25 GB/s at 0.97: eight nodes pass a slot of each of 16 channels on first.
  const Topology topology(nccl_cluster(nvswitch_node(), 10));
  CollectiveCall call = automatic_call(CollectiveOperation::broadcast, 1.0_GB, {iota(80)});
  const Library library(call, topology, published());
  const double waiting = (library.launch() + library.ring_latency(library.simple())).value();
  CHECK(nccl_time(call, topology).value() ==
        Approx(waiting + (1e9 + 8 * 16 * 524288.0) / (0.97 * 200e9)).epsilon(0.001));
}

TEST_CASE("a tree begins a piece later at each of its ways but the first") {
  // Two nodes, one level: up, then down. Under Simple pieces of 16 · 512 KiB pass at the rate of the whole.
  const Topology topology(nccl_cluster(nvswitch_node(), 2));
  CollectiveCall call = automatic_call(CollectiveOperation::all_reduce, 4.0_GB, {iota(16)});
  call.algorithm = SyncAlgorithm::double_tree;
  const auto time = [&](Bytes size) {
    call.size = size;
    return nccl_time(call, topology).value();
  };
  const double rate = (time(8.0_GB) - time(4.0_GB)) / 4e9;
  const double late = time(4.0_GB) - rate * 4e9;
  CHECK(late > rate * 16.0 * 512.0 * 1024.0);
  CHECK(late - rate * 16.0 * 512.0 * 1024.0 < 150e-6);  // launch and steps
}

TEST_CASE("what depends on the library's version does so on every GPU alike") {
  for (const double capability : {7.0, 8.0, 9.0}) {
    Node node = nvswitch_node();
    node.gpu.compute_capability = capability;
    const auto latency = [&](NcclVersion version, std::vector<int> ranks, CollectiveOperation operation) {
      Cluster cluster = nccl_cluster(node, 16);
      cluster.nccl = version;
      return by_nccl(automatic_call(operation, 1.0_KB, {std::move(ranks)}), Topology(cluster));
    };
    const std::vector<int> one_each = [] {
      std::vector<int> ranks;
      for (int i = 0; i < 16; ++i) ranks.push_back(8 * i);
      return ranks;
    }();
    using enum CollectiveOperation;
    // The launch of 2.21 and of 2.22, and nothing else.
    const double difference = latency({2, 21}, iota(8), all_reduce).phases.front().latency.value() -
                              latency({2, 22}, iota(8), all_reduce).phases.front().latency.value();
    const CollectiveConstants& constants = published().collective;
    const double launch = constants.launch_us * (capability < 9.0 ? 1.0 : constants.hopper_share);
    CHECK(difference == Approx(1e-6 * (constants.early_launch_us - launch)));
    CHECK(latency({2, 22}, one_each, all_gather).chosen_algorithm == "ring/LL");
    CHECK(latency({2, 23}, one_each, all_gather).chosen_algorithm == "pat/Simple");
  }
}

TEST_CASE("under Simple links that decide stand still at times on Ampere, and never on Volta and Blackwell") {
  // An all-gather of eight whose links are busy for so long: what it takes beside these, 2/3 of a step for each rank.
  const auto beside_links = [](double capability, Seconds links) {
    Node node = nvswitch_node();
    node.gpu.compute_capability = capability;
    const Topology topology(nccl_cluster(node));
    const CollectiveCall call = automatic_call(CollectiveOperation::all_gather, 64.0_MB, {iota(8)});
    const RingCost cost = Library(call, topology, published()).ring_in_node(links);
    REQUIRE(std::string(cost.protocol) == "Simple");
    return cost.latency.value() * 1e6;
  };
  const double volta = beside_links(7.0, 1000.0_us);
  CHECK(beside_links(7.0, 2000.0_us) == Approx(volta));
  CHECK(beside_links(10.0, 1000.0_us) == Approx(volta));
  CHECK(beside_links(8.0, 1000.0_us) == Approx(volta + 2.0 / 3.0 * 8.0 * published().collective.simple_step_us));
}

TEST_CASE("a node's switches reduce where NCCL expects them to be faster than its rings") {
  // It gives each rank's channel through the switches 60 of Hopper's 360 GB/s at most: four reach 0.85 of 240, 204 GB/s
  // of the message, a ring of four 360 · 4/6 = 240; eight ranks 306 against 360 · 8/14 = 206. On Blackwell 0.74 of 360
  // against 480, and 533 against 411.
  for (const double capability : {9.0, 10.0}) {
    Node node = hopper_node();
    node.gpu.compute_capability = capability;
    const Topology topology(nccl_cluster(node));
    const auto chosen = [&](int ranks, Bytes size) {
      const CollectiveCall call = automatic_call(CollectiveOperation::all_reduce, size, {iota(ranks)});
      return by_nccl(call, topology).chosen_algorithm;
    };
    CHECK(chosen(4, 1.0_GB) == "ring/Simple");
    CHECK(chosen(8, 1.0_GB) == "nvls");
    CHECK(chosen(8, 64.0_KB) == "ring/LL");  // 25 us against 6.6 + 14 · 0.6
  }
}

TEST_CASE("reductions in switches have more channels under way on Blackwell") {
  // Eight ranks with 16 or 24 channels each, in chunks of 64 KiB.
  for (const auto& [capability, channels] : {std::pair(9.0, 16.0), std::pair(10.0, 24.0)}) {
    Node node = hopper_node();
    node.gpu.compute_capability = capability;
    const Topology topology(nccl_cluster(node));
    const CollectiveCall call = automatic_call(CollectiveOperation::all_reduce, 500.0_MB, {iota(8)});
    CHECK(Library(call, topology, published()).switch_pieces().value() == channels * 8.0 * 65536.0);
  }
}

TEST_CASE("an all-to-all inside a node moves no more than its channels' blocks, whatever the number of ranks") {
  // Over links of 12 TB/s all that counts are the blocks: 32 channels, each of which moves messages and the own copy of
  // the buffer. At 300 GB/s eight ranks wait for 7/8 of it, then for a copy, read and written, and for pieces: 32 · 512
  // KiB are under way, of 4096 times as much a 64th of the links' time counts.
  const auto time = [](BytesPerSecond lane, int ranks, Bytes size) {
    Node node = nvswitch_node();
    node.link_types[0].bandwidth = lane;
    node.gpu.memory_bandwidth = 2000.0_GBps;
    const Topology topology(nccl_cluster(node));
    const CollectiveCall call = automatic_call(CollectiveOperation::all_to_all, size, {iota(ranks)});
    return nccl_time(call, topology).value();
  };
  const CollectiveConstants& constants = published().collective;
  for (const int ranks : {2, 4, 8}) {
    const double per_byte = (time(1000.0_GBps, ranks, 4.0_GB) - time(1000.0_GBps, ranks, 2.0_GB)) / 2e9;
    CHECK(per_byte == Approx(1e-9 / (32.0 * constants.peer_channel_gbps)));
  }
  const Bytes size(4096.0 * 32.0 * 512.0 * 1024.0);
  const double links = size.value() * 7.0 / 8.0 / (300e9 * constants.nvlink_efficiency);
  const double expected = links * (1.0 + constants.message_fill / 64.0) + size.value() * 2.0 / 8.0 / 2000e9;
  CHECK(time(25.0_GBps, 8, size) == Approx(expected).epsilon(0.001));
}

TEST_CASE("over TCP a ring is one channel of each card, as fast as one core copies, whatever the ranks at the card") {
  // Two nodes with a card of 25 GB/s each: 2 · (n-1)/n of the message pass it, n ranks in all.
  Cluster cluster = nccl_cluster(nvswitch_node(), 2);
  cluster.network.nics_per_node = 1;
  cluster.network.transport = Transport{.protocol = Protocol::tcp, .mtu = Bytes(9000.0)};
  const Topology topology(cluster);
  for (const std::vector<int>& ranks : {std::vector<int>{0, 8}, {0, 1, 2, 3, 8, 9, 10, 11}, iota(16)}) {
    CollectiveCall call = automatic_call(CollectiveOperation::all_reduce, 4.0_GB, {ranks});
    call.algorithm = SyncAlgorithm::ring;
    const double expected = bus_bandwidth_factor(CollectiveOperation::all_reduce, static_cast<int>(ranks.size())) *
                            4e9 / (published().host.pageable_copy_gbps * 1e9);
    CHECK(nccl_time(call, topology).value() == Approx(expected).epsilon(0.01));
    // A network that lets a connection carry 5 Gbit/s, which is less; one rank a node also loses the card's 3 %.
    call.size = 400.0_MB;
    cluster.network.transport->flow_limit = 5.0_Gbitps;
    const Topology limited(cluster);
    CHECK(nccl_time(call, limited).value() ==
          Approx(expected / 10.0 * (published().host.pageable_copy_gbps / 0.625)).epsilon(0.04));
    cluster.network.transport->flow_limit = BytesPerSecond::infinity();
  }
}
