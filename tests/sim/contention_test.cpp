// Collectives beside background traffic and beside each other: the estimate's own sharing of links against the
// simulator's, and both against numbers worked out by hand.
#include "model/base/error.hpp"
#include "model/collectives/flow_classes.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/collectives/rows.hpp"
#include "tests/sim/predicted.hpp"

using namespace foretrain;
using namespace foretrain::test;
using namespace foretrain::test_graphs;
using test_nodes::iota;

namespace {

LoweredCollective lowered_by(SyncAlgorithm algorithm, CollectiveOperation operation, Bytes size,
                             const std::vector<std::vector<int>>& groups, const Topology& topology, int servers) {
  CollectiveCall call;
  call.operation = operation;
  call.algorithm = algorithm;
  call.size = size;
  call.groups = groups;
  call.servers = servers;
  return lower(call, topology, load_default_calibration());
}

/// Even and odd ranks.
std::vector<std::vector<int>> strided_pair(const Topology& topology) {
  std::vector<std::vector<int>> groups(2);
  for (const int rank : iota(topology.gpus())) groups[static_cast<std::size_t>(rank % 2)].push_back(rank);
  return groups;
}

}  // namespace

TEST_CASE("background traffic on one link of a ring of eight slows it by exactly two") {
  // Alone: 2 · 7/8 · 160 MB / 16 GB/s = 17.5 ms. The stranger on the link from node 3 to node 4 takes its fair share,
  // one half, at every step; nobody in a ring is faster than its slowest link: 35 ms.
  const auto expect = [](double expected, const Overrides& overrides) {
    expect_milliseconds("contention-one-link-of-a-ring", expected, 1e-4, overrides);
  };
  expect(35.0, {});
  expect(17.5, {"background=[]"});
  // A stranger that wants no more than a quarter of the link leaves three quarters: 17.5 ms · 4/3.
  expect(17.5 * 4.0 / 3.0, {"background=[{from: node3, to: node4, rate: 4 GB/s}]"});
  // Between machines that the ring does not visit there are other links.
  expect(17.5, {"cluster.nodes=10", "workload.collective.ranks=8", "background=[{from: node8, to: node9}]"});
  // Two strangers leave a third of the link: three times as long.
  expect(52.5, {"background=[{from: node3, to: node4}, {from: node3, to: gpu4}]"});
}

TEST_CASE("data loading takes from a ring over PCIe what it moves") {
  // 4 of the 16 GB/s into GPU 0 are taken: the ring's 15 ms become 15 ms · 16/12 = 20 ms.
  expect_milliseconds("contention-data-loading", 20.0, 1e-4);
}

TEST_CASE("blocked groups stay inside their machines, strided groups leave them") {
  // Four machines with four GPUs. Blocked: each machine's own ring of 4, 2 · 3/4 · 160 MB / 16 GB/s = 15 ms. Strided:
  // four rings of one rank per machine share each machine's card, 4 · 2 · 3/4 · 160 MB / 16 GB/s = 60 ms.
  for (const auto& [layout, expected] : {std::pair("blocked", 15.0), {"strided", 60.0}}) {
    expect_milliseconds("contention-two-jobs-one-uplink", expected, 1e-4,
                        {"cluster.nodes=4", "cluster.gpus_per_node=4", "workload.collective.groups=4",
                         std::string("workload.collective.layout=") + layout});
  }
  // Bus bandwidth counts the ranks of one group.
  const Result result = predict(load_scenario("contention-two-jobs-one-uplink"), Fidelity::flows);
  CHECK(result.collective()->bus_bandwidth.value() == Approx(8e9).epsilon(1e-4));
}

TEST_CASE("property: representatives have the rates of those they stand for, whichever kinds are moving") {
  std::mt19937 random(9);
  const auto any = [&](int below) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(below)); };
  std::size_t flows = 0, classes = 0;
  for (int round = 0; round < 2000; ++round) {
    SharingSystem system;
    for (int link = 1 + any(10); link > 0; --link) system.bandwidth.push_back(BytesPerSecond(1.0 + any(2)));
    for (int flow = any(14); flow > 0; --flow) {
      std::vector<std::int32_t> links(static_cast<std::size_t>(any(4)));  // some twice
      for (std::int32_t& link : links) link = any(static_cast<int>(system.links()));
      system.add_flow(any(2), links, 1.0 + 0.5 * any(2));
    }
    const SharingSystem::Folded folded = fold(system), apart = keep_apart(system);
    flows += apart.classes();
    classes += folded.classes();
    for (const int moving : {1, 2, 3}) {  // kind 0, kind 1, both
      std::vector<bool> active_class(folded.classes()), active_flow(apart.classes());
      for (std::size_t flow = 0; flow < system.flows(); ++flow) {
        active_flow[flow] = (moving >> system.kind[flow] & 1) == 1;
        active_class[static_cast<std::size_t>(folded.class_of_flow[flow])] = active_flow[flow];
      }
      const auto of_class = MaxMinRates(folded).of(active_class), of_flow = MaxMinRates(apart).of(active_flow);
      for (std::size_t flow = 0; flow < system.flows(); ++flow) {
        const double rate = of_class[static_cast<std::size_t>(folded.class_of_flow[flow])].value();
        const bool same = rate == of_flow[flow].value() || std::abs(rate / of_flow[flow].value() - 1.0) < 1e-9;
        if (!same) FAIL("round " << round << ", flow " << flow << ": " << rate << ", not " << of_flow[flow].value());
      }
    }
  }
  CHECK(classes < flows);
}

TEST_CASE("property: folding changes no date") {
  // 100 random graphs of collectives in symmetric groups, which meet each other and background traffic.
  const Topology machines[] = {Topology(test_nodes::cluster_of(test_nodes::dgx1_node(), 2)),
                               Topology(test_nodes::cluster_of(test_nodes::nvswitch_node(), 3)),
                               Topology(test_nodes::cluster_of(test_nodes::pcie_switch_node(8)))};
  std::mt19937 random(7);
  const auto any = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  bool folded_some = false;
  for (int round = 0; round < 100; ++round) {
    const Topology& topology = machines[round % 3];
    GraphMaker make(topology);
    const ResourceId streams[] = {make.stream(), make.stream(), make.stream()};
    for (int task = 0; task < 9; ++task) {
      const Bytes size(std::round(std::uniform_real_distribution(1e6, 5e7)(random)));
      const int width = 2 << any(2), first = any(topology.gpus() / width) * width;
      LoweredCollective work = ring({first, first + 1}, size, 1.0_us);
      if (any(2) == 0) {  // every GPU to the one `width` further on
        for (int rank = 0; rank < topology.gpus(); ++rank) {
          work.phases[0].flows.push_back({rank, (rank + width) % topology.gpus(), size});
        }
      } else {
        for (int to = first + 1; to < first + width; ++to) work.phases[0].flows.push_back({first, to, size});
      }
      make.communicate(streams[any(3)], work);
    }
    std::vector<BackgroundFlow> background;
    if (any(2) == 0) background = {between_gpus(0, 1 + any(topology.gpus() - 1)), between_gpus(1, 0, 2.0_GBps)};
    const TaskGraph graph = make.graph();
    const Execution apart = simulate(graph, topology, Fidelity::flows, background, false);
    const Execution folded = simulate(graph, topology, Fidelity::flows, background, true);
    folded_some = folded_some || apart.makespan > run(graph).makespan;
    for (std::size_t task = 0; task < apart.finish.size(); ++task) {
      CHECK(folded.finish[task].value() == Approx(apart.finish[task].value()).epsilon(1e-9));
    }
  }
  CHECK(folded_some);
}

TEST_CASE("property: the estimate shares links beside background traffic as the simulator does") {
  const Topology topology(test_nodes::cluster_of(test_nodes::dgx1_node(), 2));
  std::mt19937 random(8);
  const auto gpu = [&] { return static_cast<int>(random() % static_cast<unsigned>(topology.gpus())); };
  for (int round = 0; round < 100; ++round) {
    LoweredCollective work = flows_at_once(2.0_us, {});
    for (int flow = 0; flow < 10; ++flow) {
      work.phases[0].flows.push_back(
          {gpu(), gpu(), Bytes(std::round(std::uniform_real_distribution(1e6, 5e7)(random)))});
    }
    std::vector<BackgroundFlow> background;
    while (background.size() < 3) {
      const int from = gpu(), to = gpu();
      if (from != to)
        background.push_back(between_gpus(from, to, round % 2 == 0 ? BytesPerSecond::infinity() : 4.0_GBps));
    }
    const double estimate = uncontended_time(work, topology, background).value();
    CHECK(took(work, topology, Fidelity::flows, background) == Approx(estimate).epsilon(1e-6));
  }
}

TEST_CASE("a training step is longer beside traffic that its gradients meet, and all fidelities agree") {
  // Two DGX-1 exchange gradients over four cards; the checkpoint takes its share of one of them.
  const double alone = milliseconds("contention-checkpoint-beside-training", Fidelity::flows, {"background=[]"});
  const double estimate = milliseconds("contention-checkpoint-beside-training", Fidelity::estimate);
  CHECK(estimate > 1.003 * alone);
  for (const Fidelity fidelity : {Fidelity::flows, Fidelity::steps}) {
    CHECK(milliseconds("contention-checkpoint-beside-training", fidelity) == Approx(estimate).epsilon(0.01));
  }
}

TEST_CASE("a parameter server beside traffic on its link takes longer by estimate and simulation alike") {
  // The only server's link is the bottleneck; a stranger into it takes its share while gradients are pushed.
  const std::string text =
      "cluster: { node: pcie-switch-16gbps-x4, nodes: 5, gpus_per_node: 1 }\n"
      "workload: { train: { model: vgg-16, micro_batch: 8, precision: fp32 } }\n"
      "plan: { sync: { algorithm: parameter_server, servers: 1, placement: gpu } }\n";
  const auto time = [&](Fidelity fidelity, const std::string& background) {
    return predict(load_scenario_text(text + background, "server.yaml"), fidelity).time().value();
  };
  const std::string stranger = "background: [ { from: node3, to: gpu0 } ]\n";
  const double flows = time(Fidelity::flows, stranger);
  CHECK(flows > 1.05 * time(Fidelity::flows, ""));
  CHECK(time(Fidelity::estimate, stranger) == Approx(flows).epsilon(0.06));
  CHECK(time(Fidelity::steps, stranger) == Approx(flows).epsilon(0.06));
}

TEST_CASE("what needs no link arrives at once, also beside contention") {
  // From a host to itself by way of its server process's sum nothing crosses a link; the other flow shares GPU 0's
  // link.
  const Topology topology(test_nodes::cluster_of(test_nodes::pcie_switch_node(4)));
  const EndpointId host = topology.host(0, 0);
  const LoweredCollective work = flows_at_once(0.0_s, {{topology.server_on(host), host, 1.0_GB}, {0, 1, 160.0_MB}});
  CHECK(uncontended_time(work, topology, std::vector{between_gpus(0, 2)}).value() == Approx(0.02));
  CHECK(took(work, topology, Fidelity::flows, {between_gpus(0, 2)}) == Approx(0.02));
  CHECK(took(work, topology, Fidelity::steps, {between_gpus(0, 2)}) == Approx(0.02));
}

TEST_CASE("a simulation in which something can never move is an error") {
  // No reader lets a rate of zero through; what builds its own background is reported. Messages without bytes do not
  // count.
  const Topology topology(test_nodes::cluster_of(test_nodes::pcie_switch_node(4)));
  const LoweredCollective nothing = flows_at_once(0.0_s, {{0, 1, Bytes(0.0)}});
  for (const Fidelity fidelity : {Fidelity::flows, Fidelity::steps}) {
    CHECK(took(nothing, topology, fidelity, {between_gpus(0, 1)}) == 0.0);
    CHECK_THROWS_WITH(took(nothing, topology, fidelity, {between_gpus(0, 1, BytesPerSecond(0.0))}),
                      Catch::Contains("nothing can move"));
  }
}

TEST_CASE("background traffic that stays in one memory is an error with its position") {
  const std::string text =
      "cluster: { node: pcie-switch-16gbps-x4 }\n"
      "workload: { collective: { operation: all_reduce, size: 1 MB } }\n"
      "background: [ { from: host of gpu2, to: node0 } ]\n";
  const Scenario scenario = load_scenario_text(text, "one.yaml");
  for (const Fidelity fidelity : all_fidelities) {
    CHECK_THROWS_WITH(
        predict(scenario, fidelity),
        "one.yaml:3:41: background[0].to: the traffic stays in one memory (cpu0); another place than from");
  }
}

TEST_CASE("estimate and flows and steps agree for every algorithm, alone and beside background traffic") {
  const Topology machines[] = {Topology(test_nodes::cluster_of(test_nodes::pcie_switch_node(8))),
                               Topology(test_nodes::cluster_of(test_nodes::staged_node())),
                               Topology(test_nodes::cluster_of(test_nodes::nvswitch_node(), 2)),
                               Topology(test_nodes::cluster_of(test_nodes::dgx1_node(), 2))};
  std::vector<std::pair<SyncAlgorithm, CollectiveOperation>> rows = {
      {SyncAlgorithm::automatic, CollectiveOperation::all_reduce}};
  for (const AlgorithmRow& row : algorithm_table()) rows.emplace_back(row.algorithm, row.operation);
  for (const Topology& topology : machines) {
    const int last = topology.gpus() - 1;
    const std::vector<BackgroundFlow> nobody, greedy = {between_gpus(0, last)},
                                              modest = {between_gpus(last, last / 2, 3.0_GBps)};
    struct Case {
      Bytes size;
      std::vector<std::vector<int>> groups;
      std::vector<BackgroundFlow> background;
    };
    const Case cases[] = {{1.0_MB, {iota(topology.gpus())}, nobody},
                          {1.0_MB, {iota(topology.gpus())}, greedy},
                          {160.0_MB, {iota(topology.gpus())}, modest},
                          {1.0_MB, strided_pair(topology), modest}};
    for (const auto& [algorithm, operation] : rows) {
      for (const Case& one : cases) {
        const LoweredCollective lowered = lowered_by(algorithm, operation, one.size, one.groups, topology, 2);
        const double estimate = uncontended_time(lowered, topology, one.background).value();
        // Steps have no barrier between the repetitions of a phase. Where the messages of a repetition are of different
        // sizes, ranks drift apart, once, by up to one message: in the double tree on eight ranks, ranks 1 and 2 are
        // neighbours in both trees and exchange twice the bytes. 11 repetitions of four messages' time then end one
        // message's time late, 1/70 of the whole.
        const double alone = algorithm == SyncAlgorithm::double_tree ? 0.016 : 0.01;
        const double tolerance = one.background.empty() ? alone : 0.06;
        INFO(lowered.chosen_algorithm << ", operation " << static_cast<int>(operation) << ", " << topology.gpus()
                                      << " GPUs, case " << &one - cases);
        CHECK(took(lowered, topology, Fidelity::flows, one.background) == Approx(estimate).epsilon(1e-3));
        CHECK(took(lowered, topology, Fidelity::steps, one.background) == Approx(estimate).epsilon(tolerance));
      }
    }
  }
}

TEST_CASE("servers spread unevenly over sockets: the busiest link is a bound that fair sharing does not quite reach") {
  // Three servers on two sockets of a DGX-1: of the six messages through a switch's uplink two or four cross to the
  // other socket over a link of 20 GB/s, where fair sharing holds them back while the others get through. Afterwards
  // the uplink is not full. Closed form and flows let all messages of a phase advance in proportion.
  const Topology topology(test_nodes::cluster_of(test_nodes::dgx1_node()));
  for (const SyncAlgorithm algorithm :
       {SyncAlgorithm::parameter_server, SyncAlgorithm::hierarchical_parameter_server}) {
    const LoweredCollective lowered =
        lowered_by(algorithm, CollectiveOperation::all_reduce, 100.0_MB, {iota(topology.gpus())}, topology, 3);
    const double bound = uncontended_time(lowered, topology).value();
    CHECK(took(lowered, topology, Fidelity::flows, {}) == Approx(bound).epsilon(1e-6));
    const double fair = took(lowered, topology, Fidelity::steps, {});
    CHECK(fair > 1.01 * bound);
    CHECK(fair < 1.15 * bound);
  }
}
