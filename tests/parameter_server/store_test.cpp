#include "model/parameter_server/store.hpp"

#include "model/collectives/link_load.hpp"
#include "model/parameter_server/server_graph.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;

namespace {

/// VGG-16 on textbook machines whose links carry 16 GB/s each way: three workers, two servers.
Scenario small(const std::vector<std::string>& overrides = {}) {
  return load_scenario_text(R"(
name: small
cluster:
  node: pcie-switch-16gbps-x4
  nodes: 5
  gpus_per_node: 1
workload:
  train: { model: vgg-16, micro_batch: 8, precision: fp32, optimizer: sgd }
plan:
  sync: { algorithm: parameter_server, servers: 2, placement: dedicated }
)",
                            "small.yaml", overrides);
}

struct Built : test::BuiltStep {
  explicit Built(const Scenario& from)
      : BuiltStep(from), store(build_store(scenario, train(), model, topology, step)) {}
  ParameterStore store;
};

/// Of all blocks of that name.
double seconds_of(std::string_view name, const ServerGraph& graph) {
  Seconds sum;
  for (TaskId task = 0; task < static_cast<TaskId>(graph.graph.tasks().size()); ++task) {
    if (graph.graph.block_of(task).name == name) sum += graph.graph.block_of(task).uncontended;
  }
  return sum.value();
}

}  // namespace

TEST_CASE("groups hold every parameter and every pass, and at most sixteen of them, none of which dominates") {
  const Built built(small());
  CHECK(built.store.groups.size() <= ParameterStore::most_groups);
  double parameters = 0.0;
  for (const ParameterStore::KeyGroup& group : built.store.groups) {
    const double own = std::accumulate(group.parameters.begin(), group.parameters.end(), 0.0);
    parameters += own;
    CHECK(own < 0.2 * built.model.parameters);
  }
  CHECK(parameters == Approx(built.model.parameters));  // VGG-16: 138,357,544
  const Seconds passes = built.store.compute().total();
  const Step::Chunk& chunk = built.step.rank_classes.front().chunks.front();
  CHECK(passes.value() == Approx((chunk.both_ways()).value()).epsilon(0.02));
}

TEST_CASE("links carry what the messages of all workers add up to") {
  for (const char* consistency : {"synchronous", "asynchronous"}) {
    const Built built(small({std::string("plan.sync.consistency=") + consistency}));
    const ParameterStore& store = built.store;
    const std::vector<int> workers{0, 2};
    for (const bool push : {true, false}) {
      std::vector<std::vector<double>> parameters;
      for (const ParameterStore::KeyGroup& group : store.groups) parameters.push_back(group.parameters);
      const MessageLoad load = message_load(store, built.topology, workers, push, parameters);
      for (int g = 0; g < static_cast<int>(parameters.size()); ++g) {
        std::vector<Flow> flows = store.messages(workers, g, 0, push);
        for (const Flow& flow : store.messages(workers, g, 1, push)) flows.push_back(flow);
        CHECK(load.busiest[at_index(g)].value() == Approx(LinkLoad(built.topology).busiest(flows).value()));
      }
    }
  }
}

TEST_CASE("the bounds are what one step's bytes and sums take") {
  const Built built(small());
  const ParameterStore::Bounds bounds = store_bounds(built.store, built.topology);
  // A server's card receives half of 4 · 138.36 MB from each of three workers and sends as much, on a full-duplex link
  // of 16 GB/s: 3 · 276.7 MB / 16 GB/s. The worker's own card carries the whole once, 2/3 of that.
  CHECK(bounds.link.value() == Approx(3.0 * 0.5 * 4.0 * 138.357544e6 / 16e9).epsilon(0.01));
  // Its memory of 76.8 GB/s is crossed four times by what it receives and once by what it sends: 5 · 830 MB.
  CHECK(bounds.server.value() == Approx(5.0 * 3.0 * 0.5 * 4.0 * 138.357544e6 / 76.8e9).epsilon(0.01));
  CHECK(bounds.compute >= built.store.compute().total());
}

TEST_CASE("the busiest link bounds a step, wherever it stands among all") {
  // One server beside the first of five workers: its card brings what the four others push, all other cards a quarter.
  const Built built(small({"plan.sync.servers=1", "plan.sync.placement=colocated"}));
  REQUIRE(built.topology.node_of(built.store.pull_from.front()) == 0);
  const ParameterStore::Bounds bounds = store_bounds(built.store, built.topology);
  CHECK(bounds.link.value() == Approx(4.0 * 4.0 * 138.357544e6 / 16e9).epsilon(0.01));
}

TEST_CASE("an update reads gradient and weight and writes the weight, at the rate of the server's memory") {
  const Built built(small());
  for (const ParameterStore::KeyGroup& group : built.store.groups) {
    for (std::size_t s = 0; s < group.update.size(); ++s) {
      CHECK(group.update[s].value() == Approx(12.0 * group.parameters[s] / 76.8e9));
    }
  }
}

TEST_CASE("an update of weights that workers hold in two bytes writes these beside its own") {
  const auto per_parameter = [](const char* precision) {
    const Built built(small({std::string("workload.train.precision=") + precision, "cluster.node=dgx-a100-80gb"}));
    double seconds = 0.0, parameters = 0.0;
    for (const ParameterStore::KeyGroup& group : built.store.groups) {
      for (std::size_t s = 0; s < group.update.size(); ++s) {
        seconds += group.update[s].value();
        parameters += group.parameters[s];
      }
    }
    return seconds / parameters;
  };
  // Four bytes of gradient and four of weight are read, four are written, and two more for workers in bf16.
  CHECK(per_parameter("bf16") == Approx(14.0 / 12.0 * per_parameter("fp32")));
}

TEST_CASE("few cores add up more slowly than their memory could") {
  // Two cores of 8 GB/s each move 16 GB/s, three bytes per byte added: 5.3 GB/s, less than a card of 16 GB/s brings.
  Scenario scenario = small();
  scenario.cluster.node.cpu.cores = 2;
  const Topology topology(scenario.cluster);
  CHECK(topology.summing_traffic_rate().value() == Approx(16e9));
  const EndpointId host = topology.host(4, 0);
  CHECK(topology.route(0, topology.server_on(host)).bandwidth.value() == Approx(16e9 / 3.0));
  CHECK(topology.route(0, host).bandwidth.value() == Approx(16e9));
  CHECK(topology.host_of_server(topology.server_on(host)) == host);
  CHECK(topology.node_of(topology.server_on(host)) == 4);
  CHECK(topology.endpoint_name(topology.server_on(host)) == "node4/cpu0 server");
}

TEST_CASE("a bound of zero is synchronous, and one beyond what is simulated is none") {
  CHECK(Built(small({"plan.sync.consistency=bounded(0)"})).store.consistency == Sync::Consistency::synchronous);
  CHECK(Built(small({"plan.sync.consistency=bounded(1)"})).store.consistency == Sync::Consistency::bounded);
  CHECK(Built(small({"plan.sync.consistency=bounded(33)"})).store.consistency == Sync::Consistency::asynchronous);
  CHECK_THROWS_WITH(small({"plan.sync.consistency=bounded"}), Catch::Contains("unknown value \"bounded\""));
}

TEST_CASE("unequal workers: the slowest counts when all wait, and speeds add up when none does") {
  const auto factor = [](const std::string& consistency, const std::string& unequal) {
    const Built built(small({"plan.sync.consistency=" + consistency, unequal}));
    const Seconds passes = built.store.compute().total();
    const Seconds bound = store_bounds(built.store, built.topology).compute;
    return (bound - built.store.host_between_steps) / passes;
  };
  // One of three takes twice as long. Waiting for it: 2, with or without a lead. Else 3 / (1 + 1 + 1/2) = 1.2.
  const std::string slow = "plan.sync.slow_workers={ count: 1, factor: 2 }";
  CHECK(factor("synchronous", slow) == Approx(2.0));
  CHECK(factor("bounded(3)", slow) == Approx(2.0));
  CHECK(factor("asynchronous", slow) == Approx(1.2));
  CHECK(factor("asynchronous", "plan.sync.slow_workers={ count: 3, factor: 2 }") == Approx(2.0));
  // If each iteration has another slowest worker, all wait for it the less, the farther they may be apart.
  const std::string varied = "workload.train.compute_spread=0.3";
  CHECK(factor("synchronous", varied) > factor("bounded(1)", varied));
  CHECK(factor("bounded(1)", varied) > factor("bounded(3)", varied));
  CHECK(factor("bounded(3)", varied) > factor("asynchronous", varied));
}

TEST_CASE("the graph of a synchronous step: pulls wait for all workers, asynchronous ones for their own push alone") {
  // Tasks that wait for the first group's push of worker 0: asynchronous, its own update only.
  for (const bool asynchronous : {false, true}) {
    const Built built(
        small({asynchronous ? "plan.sync.consistency=asynchronous" : "plan.sync.consistency=synchronous"}));
    const ServerGraph::Iterations iterations{1, {3, 3, 3}};
    const ServerGraph graph = build_server_graph(built.store, built.topology, iterations, lanes_of(built.store, 1));
    int updates = 0, pushes = 0, pulls = 0;
    for (TaskId task = 0; task < static_cast<TaskId>(graph.graph.tasks().size()); ++task) {
      const std::string& name = graph.graph.block_of(task).name;
      updates += name == "update" ? 1 : 0;
      pushes += name == "gradient push" ? 1 : 0;
      pulls += name == "weight pull" ? 1 : 0;
      if (name != "update") continue;
      CHECK(graph.graph.predecessors(task).size() == (asynchronous ? 1U : 3U));
    }
    // Each push of three workers is an update of its own, or all three are one; nothing is pulled for iteration 0.
    CHECK(updates == (asynchronous ? pushes : pushes / 3));
    CHECK(pulls == pushes * 2 / 3);
    CHECK(graph.passes_done.size() == 3);
    CHECK(graph.passes_done.front().size() == 3);
  }
}

TEST_CASE("a lane of three asynchronous workers does the updates of three, each two updates behind") {
  const Built built(small({"plan.sync.consistency=asynchronous"}));
  const ServerGraph::Iterations iterations = usual_iterations(built.store);
  const ServerGraph together =
      build_server_graph(built.store, built.topology, iterations, lanes_of(built.store, built.store.worker_count()));
  const ServerGraph apart = build_server_graph(built.store, built.topology, iterations, lanes_of(built.store, 1));
  CHECK(seconds_of("update", together) == Approx(seconds_of("update", apart)));
  // Between a worker's pull and its own update each of the other two applies one.
  const auto staleness = times_of(built.store, together, run(together.graph)).staleness;
  REQUIRE(staleness);
  CHECK(staleness->mean == 2.0);
  CHECK(staleness->max == 2.0);
}

TEST_CASE("two servers on one socket update at half of its memory's rate each") {
  // One socket of 76.8 GB/s: each update moves 12 bytes a parameter.
  const Built one(
      small({"plan.sync.placement=cpu", "plan.sync.servers=1", "cluster.nodes=1", "cluster.gpus_per_node=4"}));
  const Built two(
      small({"plan.sync.placement=cpu", "plan.sync.servers=2", "cluster.nodes=1", "cluster.gpus_per_node=4"}));
  REQUIRE(two.store.pull_from[0] == two.store.pull_from[1]);
  const auto rate = [](const Built& built) {
    const ParameterStore::KeyGroup& group = built.store.groups.front();
    const std::size_t server = group.parameters.front() > 0.0 ? 0 : 1;
    return 12.0 * group.parameters[server] / group.update[server].value();
  };
  CHECK(rate(one) == Approx(76.8e9));
  CHECK(rate(two) == Approx(76.8e9 / 2.0));
}

TEST_CASE("a server on a GPU adds up what all pushed and updates, in one kernel that its memory bounds") {
  // Synchronous, four workers, fp32, sgd: for each parameter four gradients are read and their sum is written, 20
  // bytes; updating reads gradient and weight and writes the weight, 12 more. Asynchronous: 12.
  const auto bytes = [](const char* consistency) {
    const std::string choice = std::string("plan.sync.consistency=") + consistency;
    const Built built(small({"plan.sync.placement=gpu", "cluster.nodes=1", "cluster.gpus_per_node=4", choice}));
    const Gpu& gpu = built.scenario.cluster.node.gpu;
    const StreamingConstants& kernels = built.scenario.calibration.streaming;
    const ParameterStore::KeyGroup& group = *std::ranges::max_element(
        built.store.groups, {}, [](const ParameterStore::KeyGroup& g) { return g.parameters.front(); });
    const double kernel = kernels.kernel_us * 1e-6;
    return (group.update.front().value() - kernel) * gpu.memory_bandwidth.value() * kernels.bandwidth_efficiency *
           kernels.optimizer_efficiency / group.parameters.front();
  };
  CHECK(bytes("synchronous") == Approx(32.0).epsilon(0.01));
  CHECK(bytes("asynchronous") == Approx(12.0).epsilon(0.01));
}

TEST_CASE("many unequal workers share lanes, each of one speed, and few have one each") {
  ParameterStore store = Built(small({"plan.sync.consistency=asynchronous"})).store;
  const auto lanes = [&](int workers, int slow) {
    store.workers.assign(static_cast<std::size_t>(workers), {0});
    store.slow = {slow, 2.0};
    return usual_lanes(store);
  };
  CHECK(lanes(128, 1).size() == 128);  // two servers: 256 messages at a time
  const std::vector<WorkerLane> many = lanes(1000, 3);
  CHECK(many.size() <= 50);
  int next = 0;
  for (const WorkerLane& lane : many) {
    for (const int worker : lane) {
      CHECK(worker == next++);
      CHECK(store.mean_factor(worker) == store.mean_factor(lane.front()));
    }
  }
  CHECK(next == 1000);
  CHECK(usual_iterations(store).of_worker.size() == 1000);
}

TEST_CASE("pushes and pulls carry what is stated, as rings do; pulls what weights are kept in") {
  // A parameter's gradient travels in plan.sync.gradient_precision, as in a ring's bucket; its weight in the format in
  // which it is kept, or in plan.sync.parameter_precision. 4 and 2 bytes in bf16, 2 and 2 or 4 and 4 where that is
  // said.
  struct Row {
    std::vector<std::string> stated;
    double pushed, pulled;
  };
  for (const Row& row : {Row{{}, 4, 4}, Row{{"workload.train.precision=bf16"}, 4, 2},
                         Row{{"workload.train.precision=bf16", "plan.sync.gradient_precision=bf16"}, 2, 2},
                         Row{{"workload.train.precision=bf16", "plan.sync.parameter_precision=fp32"}, 4, 4},
                         Row{{"workload.train.precision=fp16", "plan.sync.parameter_precision=fp16"}, 4, 2}}) {
    CAPTURE(row.stated);
    std::vector<std::string> stated = row.stated;
    stated.emplace_back("workload.train.model=gpt2");
    const Built built(small(stated));
    CHECK(built.store.gradient.value() == row.pushed);
    CHECK(built.store.weight.value() == row.pulled);
    CHECK(bytes_per_element(built.scenario.plan.sync.gradient_precision).value() == row.pushed);
  }
}

TEST_CASE("calls over TCP take turns on a connection and at a variable, and nowhere else") {
  const auto calls_of = [](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {"cluster.network.transport.protocol=tcp", "plan.sync.split=1 TB"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    const Built built(small(overrides));
    ParameterStore::Calls all;
    for (const ParameterStore::KeyGroup& group : built.store.groups) {
      for (const ParameterStore::Calls& calls : group.calls) {
        all.push += calls.push;
        all.pull += calls.pull;
        all.lock = std::max(all.lock, calls.lock);
      }
    }
    return all;
  };
  // VGG-16: 138,357,544 parameters in 16 layers of four bytes each, at 1.36 GB/s and 20 us a call, once up and once
  // down; its largest layer has 25,088 x 4,096 weights and 4,096 biases.
  const double all = 138'357'544.0 * 4.0 / 1.36e9 + 16.0 * 20e-6;
  const double largest = (25'088.0 * 4096.0 + 4096.0) * 4.0 / 1.36e9 + 20e-6;
  for (const int nodes : {5, 9}) {  // other workers have connections of their own
    const ParameterStore::Calls calls = calls_of({"cluster.nodes=" + std::to_string(nodes)});
    CHECK(calls.push.value() == Approx(all));
    CHECK(calls.pull.value() == Approx(all));
    CHECK(calls.lock.value() == Approx(largest));
  }
  // Updates do not wait for each other's calls: of three workers' writers of a variable two wait.
  const Built built(small({"cluster.network.transport.protocol=tcp", "plan.sync.split=1 TB"}));
  const ServerGraph graph = build_server_graph(built.store, built.topology, {0, {1, 1, 1}},
                                               lanes_of(built.store, built.store.worker_count()));
  double waiting = 0.0;
  for (const ParameterStore::KeyGroup& group : built.store.groups) {
    for (const ParameterStore::Calls& calls : group.calls) waiting += 2.0 * calls.lock.value();
  }
  CHECK(seconds_of("calls", graph) == Approx(waiting));
  // Cards that read and write memory themselves need no calls.
  CHECK(calls_of({"cluster.network.transport.protocol=roce"}).push == Seconds(0.0));
}
