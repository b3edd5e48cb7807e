// Lists of tasks: which wait for which, how often, and on what they run.
#include "model/tasks/task_list.hpp"

#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Tasks of a node with two sockets and eight GPUs, one a line.
Scenario listed(const std::string& tasks, const std::vector<std::string>& overrides = {}) {
  return load_scenario_text("cluster: { node: dgx-a100-80gb }\nworkload:\n  tasks:\n" + tasks, "test.yaml", overrides);
}

double milliseconds(const std::string& tasks) { return estimate(listed(tasks)).time().value() * 1e3; }

std::vector<Resource> queues(const std::string& tasks) {
  const Scenario scenario = listed(tasks);
  const TaskList list =
      build_task_list(scenario, std::get<TasksWorkload>(scenario.workload), Topology(scenario.cluster));
  return {list.graph.resources().begin(), list.graph.resources().end()};
}

std::string product(const std::string& on) {
  return "    - { id: \"" + on + "\", on: \"" + on + "\", run: { matmul: { m: 512, n: 512, k: 512 } } }\n";
}

}  // namespace

TEST_CASE("Tasks with as many repetitions wait one for one, others for the last") {
  // The second is ready after one, or two, of 1 ms, and takes n times 2 ms itself.
  const std::string first = "    - { id: first, on: cpu0, run: { sleep: 1 ms, repeat: 3 } }\n";
  const auto second = [](const std::string& repeat) {
    return "    - { id: second, on: cpu1, run: { sleep: 2 ms, repeat: " + repeat + " }, after: [first] }\n";
  };
  CHECK(milliseconds(first + second("3")) == Approx(1 + 3 * 2));
  CHECK(milliseconds(first + second("2")) == Approx(3 + 2 * 2));
  // In a loop of two turns, too, as long as both are in it; what comes behind it waits for the last of all.
  const std::string loop =
      "    - loop: 2\n      tasks:\n        - { id: first, on: cpu0, run: { sleep: 1 ms } }\n"
      "        - { id: beside, on: cpu1, run: { sleep: 2 ms }, after: [first] }\n";
  CHECK(milliseconds(loop) == Approx(1 + 2 * 2));
  CHECK(milliseconds(loop + "    - { id: last, on: cpu1, run: { sleep: 8 ms }, after: [first] }\n") ==
        Approx(1 + 2 * 2 + 8));
  CHECK(milliseconds("    - loop: 2\n      tasks:\n        - { id: first, on: cpu0, run: { sleep: 1 ms } }\n"
                     "    - { id: second, on: cpu1, run: { sleep: 2 ms }, after: [first] }\n") == Approx(2 * 1 + 2));
}

TEST_CASE("Each turn of a loop has all its tasks, and the next loop begins behind them") {
  // On one thread: two turns of 1 + 2 ms, three of 4 ms, and one of 8 ms.
  CHECK(milliseconds("    - loop: 2\n      tasks:\n        - { id: a, on: cpu, run: { sleep: 1 ms } }\n"
                     "        - { id: b, on: cpu, run: { sleep: 2 ms } }\n"
                     "    - loop: 3\n      tasks:\n        - { id: c, on: cpu, run: { sleep: 4 ms } }\n"
                     "    - { id: d, on: cpu, run: { sleep: 8 ms } }\n") == Approx(2 * 3 + 3 * 4 + 8));
}

TEST_CASE("A thread that waits for its kernels resumes once, a way back later; one without any at once") {
  const std::string launched =
      "    - { id: product, on: gpu0, enqueued_by: cpu, run: { matmul: { m: 4096, n: 4096, k: 4096 } } }\n";
  const std::string waits = "    - { id: done, on: cpu, run: synchronize }\n";
  // host.synchronize_us of the published calibration: 3.3 us.
  CHECK(milliseconds(launched + waits) - milliseconds(launched) == Approx(0.0033));
  CHECK(milliseconds("    - { id: a, on: cpu, run: { sleep: 1 ms } }\n" + waits) == Approx(1.0));
}

TEST_CASE("The front end runs ahead of a slower device until the queue is full") {
  // Ten products, each launched by three tasks: 7 us of dispatch, 2.6 us on its way, the kernel.
  Scenario scenario = listed(
      "    - { id: product, on: gpu0, enqueued_by: cpu, run: { matmul: { m: 4096, n: 4096, k: 4096 }, repeat: 10 } "
      "}\n");
  const auto executed = [&](double depth) {
    scenario.calibration.host.queue_launches = depth;
    return run(build_task_list(scenario, std::get<TasksWorkload>(scenario.workload), Topology(scenario.cluster)).graph);
  };
  const auto dispatched = [](const Execution& execution, std::size_t i) { return execution.finish[3 * i].value(); };
  const Execution free = executed(1024), four = executed(4), one = executed(1);
  const double kernel = (free.finish[2] - free.start[2]).value(), first = 9.6e-6 + kernel;
  REQUIRE(kernel > 7e-6);
  CHECK(dispatched(free, 9) == Approx(70e-6));
  CHECK(free.makespan.value() == Approx(9.6e-6 + 10 * kernel));
  // Room for four: the fifth is handed over when the first has ended, the tenth when the sixth has. The device never
  // notices. Room for one: every launch waits for the kernel before it.
  CHECK(dispatched(four, 3) == Approx(28e-6));
  CHECK(dispatched(four, 4) == Approx(first + 7e-6));
  CHECK(dispatched(four, 9) == Approx(first + 5 * kernel + 7e-6));
  CHECK(four.makespan == free.makespan);
  CHECK(one.makespan.value() == Approx(10 * first));
}

TEST_CASE("Places are queues of what they are: threads of the host, disks, engines that copy, and streams") {
  using Kind = Resource::Kind;
  const std::string copy = "run: { copy: { from: gpu1, to: cpu, size: 1 MB } } }\n";
  const std::vector<Resource> all = queues(
      "    - { id: a, on: cpu1, run: { sleep: 1 ms } }\n    - { id: b, on: disk, run: { copy: { from: disk, to: "
      "cpu, size: 1 MB } } }\n    - { id: c, on: \"gpu1:d2h\", " +
      copy + "    - { id: d, on: \"gpu1:h2d\", " + copy + "    - { id: e, on: \"gpu1:p2p\", " + copy + product("gpu1"));
  const Kind kinds[] = {Kind::host_thread, Kind::disk,          Kind::copy_engine,
                        Kind::copy_engine, Kind::device_stream, Kind::device_stream};
  const int lanes[] = {0, 0, 1, 1, 1, 1};
  REQUIRE(all.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    INFO(all[i].name);
    CHECK(all[i].kind == kinds[i]);
    CHECK(all[i].rank_class == lanes[i]);
    CHECK(all[i].device == -1);  // one stream has its GPU to itself
  }
}

TEST_CASE("Streams of one GPU share it, and neither its engines nor another GPU's only stream do") {
  const std::vector<Resource> all = queues(
      product("gpu0:stream1") + product("gpu0:stream2") + product("gpu1") + product("gpu2") + product("gpu2:stream1") +
      "    - { id: home, on: \"gpu0:d2h\", run: { copy: { from: gpu0, to: cpu, size: 1 MB } } }\n");
  std::vector<int> devices;
  for (const Resource& resource : all) devices.push_back(resource.device);
  CHECK(devices == std::vector{0, 0, -1, 1, 1, -1});
}

TEST_CASE("A model is called as the plan says, unless the call says otherwise") {
  const auto executed = [](const std::string& own) {
    const Scenario scenario = listed("    - { id: net, on: gpu0, run: { forward: { model: lenet" + own + " } } }\n",
                                     {"plan.execution=cuda_graph"});
    return estimate(scenario).tasks()->calls.at("net").execution;
  };
  CHECK(executed("") == ExecutionMode::cuda_graph);
  CHECK(executed(", execution: eager") == ExecutionMode::eager);
  CHECK(executed(", execution: compiled") == ExecutionMode::compiled);
}
