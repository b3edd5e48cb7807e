// From the dates at which workers are done to steps, and how many iterations that takes: dates and counts by hand.
#include "model/parameter_server/server_graph.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;

namespace {

/// Three workers and two servers.
test::BuiltStep three_built(const std::vector<std::string>& overrides) {
  return test::BuiltStep(load_scenario_text(R"(
cluster: { node: pcie-switch-16gbps-x4, nodes: 5, gpus_per_node: 1 }
workload:
  train: { model: vgg-16, micro_batch: 8, precision: fp32, optimizer: sgd }
plan:
  sync: { algorithm: parameter_server, servers: 2, placement: dedicated }
)",
                                            "three.yaml", overrides));
}
ParameterStore store_of(const test::BuiltStep& built) {
  return build_store(built.scenario, built.train(), built.model, built.topology, built.step);
}
ParameterStore three_workers(const std::vector<std::string>& overrides) { return store_of(three_built(overrides)); }

using Dates = std::vector<std::vector<double>>;

/// Workers one by one, whose passes end at these dates in thousands of seconds.
ServerGraph::Times times(const ParameterStore& store, const Dates& ends, ServerGraph::Iterations iterations,
                         ServerGraph::Meeting meeting = ServerGraph::Meeting::everybody, double unit = 1000.0) {
  ServerGraph graph;
  graph.iterations = std::move(iterations);
  graph.meeting = meeting;
  Execution execution;
  for (std::size_t worker = 0; worker < ends.size(); ++worker) {
    graph.lanes.push_back({static_cast<int>(worker)});
    std::vector<TaskId>& done = graph.passes_done.emplace_back();
    for (const double end : ends[worker]) {
      done.push_back(static_cast<TaskId>(execution.finish.size()));
      execution.finish.emplace_back(unit * end);
    }
  }
  execution.start = execution.finish;
  return times_of(store, graph, execution);
}

double step_of(const ParameterStore& store, const Dates& ends, int warm_up, int run_out = 0,
               ServerGraph::Meeting meeting = ServerGraph::Meeting::everybody) {
  return times(store, ends, {warm_up, {}, run_out}, meeting).step.value() / 1000.0;
}

}  // namespace

TEST_CASE("Workers in step are as fast as the last of them, from the end of warming up to where the first run out") {
  const ParameterStore store = three_workers({});
  // The last worker ends its passes at 2, 5, 9 and 14.
  const Dates ends = {{1, 5, 6, 10}, {2, 4, 9, 11}, {2, 3, 8, 14}};
  CHECK(step_of(store, ends, 2) == Approx((14.0 - 5.0) / 2));
  CHECK(step_of(store, ends, 0) == Approx((14.0 - 2.0) / 3));
  CHECK(step_of(store, ends, 1) == Approx((14.0 - 2.0) / 3));
  CHECK(step_of(store, ends, 9) == Approx(14.0 - 9.0));  // one iteration at least
  CHECK(step_of(store, ends, 2, 1) == Approx(9.0 - 5.0));
}

TEST_CASE("Asynchronous workers that nobody meets go at their own pace once they are warm, and their speeds add up") {
  const ParameterStore store = three_workers({"plan.sync.consistency=asynchronous"});
  constexpr auto nobody = ServerGraph::Meeting::nobody;
  const std::vector<double> one = {1, 3, 6, 10};
  CHECK(step_of(store, {one, one, one}, 2, 0, nobody) == Approx((10.0 - 3.0) / 2));
  CHECK(step_of(store, {one, one, one}, 0, 0, nobody) == Approx((10.0 - 1.0) / 3));
  CHECK(step_of(store, {one, one, one}, 10, 0, nobody) == Approx(10.0 - 6.0));
  // One of 2/7 iterations a second, two of a half.
  const std::vector<double> other = {2, 4, 6, 8};
  CHECK(step_of(store, {one, other, other}, 2, 0, nobody) == Approx(3.0 / (2.0 / 7.0 + 0.5 + 0.5)));
}

TEST_CASE("Those that meet count from when all are warm to when the first is done, parts of iterations included") {
  const ParameterStore store = three_workers({"plan.sync.consistency=asynchronous"});
  // From 4 to 8: the first has done 2 1/3 and then 3 1/2 iterations, the others 2 and 4.
  CHECK(step_of(store, {{1, 3, 6, 10}, {2, 4, 6, 8}, {2, 4, 6, 8}}, 2) ==
        Approx(3.0 / ((3.5 - 7.0 / 3.0) / 4.0 + 0.5 + 0.5)));
  // If one is warm only when others are done, from the beginning: it has done half of its first until 10.
  CHECK(step_of(store, {{1, 3, 6, 10}, {1, 3, 6, 10}, {20, 30}}, 2) == Approx(3.0 / (0.4 + 0.4 + 0.05)));
}

TEST_CASE(
    "An average worker computes for its passes' share of a step, all of it at most, less where a bound holds it") {
  const ParameterStore store = three_workers({});
  const Dates ends = {{2, 4, 6}, {2, 4, 6}, {2, 4, 6}};
  const ServerGraph::Iterations iterations{1, {}, 0};
  const double passes = store.compute().total().value();
  CHECK(times(store, ends, iterations).compute_share == Approx(passes / 2000.0));
  CHECK(times(store, ends, iterations, ServerGraph::Meeting::everybody, 1e-9).compute_share == 1.0);
}

TEST_CASE("As many iterations are run as speeds need to settle") {
  const auto usual = [](const std::vector<std::string>& overrides) {
    return usual_iterations(three_workers(overrides));
  };
  const auto all = [](int count) { return std::vector<int>(3, count); };
  // Equal workers in step repeat themselves.
  CHECK(usual({}).warm_up == 3);
  CHECK(usual({}).of_worker == all(6));
  // Messages are few enough for 32 that count; a quarter of them warm up, and a worker three ahead runs out of
  // four.
  const std::string spread = "workload.train.compute_spread=0.3", bounded = "plan.sync.consistency=bounded(3)";
  CHECK(usual({spread, bounded}).warm_up == 8);
  CHECK(usual({spread, bounded}).run_out == 4);
  CHECK(usual({spread, bounded}).of_worker == all(8 + 32 + 4));
  // Without chance they settle into a cycle by half of these.
  CHECK(usual({bounded}).warm_up == 20);
  CHECK(usual({bounded}).of_worker == all(8 + 32 + 4));
  // Three times as fast as the slow one, the others gain two iterations on each of its own: two for a lead of four.
  const std::string slow = "plan.sync.slow_workers={ count: 1, factor: 3 }";
  CHECK(usual({spread, bounded, slow}).warm_up == 8 + 2);
  CHECK(usual({spread, bounded, slow}).of_worker == all(8 + 2 + 32 + 4));
  // Asynchronous: in the time of forty a worker of half the speed does twenty, unless all are as slow.
  const std::string free = "plan.sync.consistency=asynchronous";
  std::vector<int> unequal = usual({free, "plan.sync.slow_workers={ count: 1, factor: 2 }"}).of_worker;
  std::ranges::sort(unequal);
  CHECK(unequal == std::vector<int>{20, 40, 40});
  CHECK(usual({free, "plan.sync.slow_workers={ count: 3, factor: 2 }"}).of_worker == all(40));
}

TEST_CASE("the graph of bounded workers lets the fast ones be so many iterations ahead, and no more") {
  const test::BuiltStep built =
      three_built({"plan.sync.consistency=bounded(2)", "plan.sync.slow_workers={ count: 1, factor: 8 }"});
  const ParameterStore store = store_of(built);
  const ServerGraph graph = build_server_graph(store, built.topology, {1, {9, 9, 9}, 0}, lanes_of(store, 1));
  const Execution execution = run(graph.graph);
  std::vector<std::vector<Seconds>> done;
  for (const std::vector<TaskId>& passes : graph.passes_done) {
    std::vector<Seconds>& own = done.emplace_back();
    for (const TaskId task : passes) own.push_back(execution.finish[static_cast<std::size_t>(task)]);
  }
  std::ranges::sort(done, std::ranges::greater(), [](const auto& own) { return own.back(); });
  const std::vector<Seconds>&slow = done.front(), &fast = done.back();
  // Iteration i begins when the slow worker has done i - 3, and is done before this has done i - 2.
  for (std::size_t i = 3; i < 9; ++i) {
    CHECK(fast[i] > slow[i - 3]);
    CHECK(fast[i] < slow[i - 2]);
  }
}
