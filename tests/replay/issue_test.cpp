// The order in which one host thread hands a graph to streams, proved on paper: no device.
#include "validate/replay/issue.hpp"

#include "tests/catch.hpp"

using namespace foretrain;
using namespace foretrain::replay;
using HostAction = HostWork::Action;

namespace {

/// Carries operations out as CUDA would, in steps of one operation of any stream, chosen at random among those that may
/// go on: every order that it can choose may happen on a device. Notes when each task began and ended.
class Machine final : public Backend {
 public:
  Machine(const Graph& graph, int events, unsigned seed)
      : queues_(graph.resources.size()),
        happened_(static_cast<std::size_t>(events), false),
        began(graph.tasks.size(), -1),
        ended(graph.tasks.size(), -1),
        random_(seed) {}

  void stream_waits(int stream, int event) override { put(stream, {Step::Kind::wait, event}); }
  void record(int event, int stream) override { put(stream, {Step::Kind::record, event}); }
  void run(int task, int stream) override {
    if (stream >= 0) {
      put(stream, {Step::Kind::run, task});
    } else {
      began[static_cast<std::size_t>(task)] = now_++;
      for (int i = 0; i < 3; ++i) advance();  // devices go on while the host works
      ended[static_cast<std::size_t>(task)] = now_++;
    }
  }
  void run_graph(int first, int count, int stream) override {
    for (int i = 0; i < count; ++i) run(first + i, stream);
  }
  void host_waits(int event) override {
    while (!happened_[static_cast<std::size_t>(event)]) REQUIRE(advance());  // else it would wait for ever
  }
  void finish() {
    while (advance()) {
    }
    for (const auto& queue : queues_) REQUIRE(queue.empty());
  }

 private:
  struct Step {
    enum class Kind { wait, record, run } kind;
    int number;
  };
  void put(int stream, Step step) { queues_[static_cast<std::size_t>(stream)].push_back(step); }

  /// One step of a stream that can make one.
  bool advance() {
    std::vector<std::size_t> able;
    for (std::size_t s = 0; s < queues_.size(); ++s) {
      if (queues_[s].empty()) continue;
      const Step& step = queues_[s].front();
      if (step.kind != Step::Kind::wait || happened_[static_cast<std::size_t>(step.number)]) able.push_back(s);
    }
    if (able.empty()) return false;
    const std::size_t s = able[std::uniform_int_distribution<std::size_t>(0, able.size() - 1)(random_)];
    const Step step = queues_[s].front();
    const auto number = static_cast<std::size_t>(step.number);
    if (step.kind == Step::Kind::run && began[number] < 0) {
      began[number] = now_++;
      return true;
    }
    if (step.kind == Step::Kind::run) ended[number] = now_++;
    if (step.kind == Step::Kind::record) happened_[number] = true;
    queues_[s].erase(queues_[s].begin());
    return true;
  }

  std::vector<std::vector<Step>> queues_;
  std::vector<bool> happened_;
  int now_ = 0;

 public:
  std::vector<int> began, ended;

 private:
  std::mt19937 random_;
};

Block kernel(const std::string& name = "k") {
  return {name, "compute", 1.0, {KernelWork{"k", "traffic", {}, 1, 1.0_s}}};
}
Block host(HostAction action, int kernels = 0, bool graph = false) {
  return {"h", "host", 1.0, {HostWork{action, {}, {}, kernels, graph}}};
}

/// Streams, copies, a host thread and a path; tasks that wait for any three earlier ones.
Graph random_graph(unsigned seed, int tasks) {
  std::mt19937 random(seed);
  const auto pick = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  Graph graph;
  graph.resources = {{"gpu0", Resource::Kind::stream, 0}, {"gpu0:stream1", Resource::Kind::stream, 0},
                     {"gpu1", Resource::Kind::stream, 1}, {"gpu0:d2h", Resource::Kind::copies, 0},
                     {"cpu", Resource::Kind::host, 0},    {"launches", Resource::Kind::path, 0}};
  graph.blocks = {
      kernel(), {"c", "communication", 1.0, {CopyWork{}}}, host(HostAction::wait), host(HostAction::launch)};
  for (int i = 0; i < tasks; ++i) {
    Task task;
    task.resource = pick(5);
    task.block = std::max(0, task.resource - 2);
    for (int k = pick(3); k > 0 && i > 0; --k) task.after.push_back(pick(i - 1));
    std::sort(task.after.begin(), task.after.end());
    task.after.erase(std::unique(task.after.begin(), task.after.end()), task.after.end());
    graph.tasks.push_back(task);
  }
  return graph;
}

/// Tasks that `task` waits for, those on their way replaced by what they wait for.
std::vector<int> awaited(const Graph& graph, int task) {
  std::vector<int> all;
  for (const int before : graph.tasks[static_cast<std::size_t>(task)].after) {
    const auto resource = static_cast<std::size_t>(graph.tasks[static_cast<std::size_t>(before)].resource);
    if (graph.resources[resource].kind == Resource::Kind::path) {
      const std::vector<int> behind = awaited(graph, before);
      all.insert(all.end(), behind.begin(), behind.end());
    } else {
      all.push_back(before);
    }
  }
  return all;
}

void check_execution(const Graph& graph, const Machine& machine) {
  std::vector<int> last(graph.resources.size(), -1);
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const auto resource = static_cast<std::size_t>(graph.tasks[t].resource);
    if (graph.resources[resource].kind == Resource::Kind::path) continue;
    REQUIRE(machine.ended[t] >= 0);
    for (const int before : awaited(graph, static_cast<int>(t))) {
      REQUIRE(machine.ended[static_cast<std::size_t>(before)] < machine.began[t]);
    }
    // One after the other on each resource, in the order of numbers.
    if (last[resource] >= 0) REQUIRE(machine.ended[static_cast<std::size_t>(last[resource])] < machine.began[t]);
    last[resource] = static_cast<int>(t);
  }
}

std::vector<int> order_of(const IssuePlan& plan) {
  std::vector<int> order;
  for (const Operation& operation : plan.operations) {
    if (operation.task >= 0 && operation.kind != Operation::Kind::record) order.push_back(operation.task);
  }
  return order;
}

}  // namespace

TEST_CASE("in whatever order devices finish their work, every dependency holds and nothing stands still", "[replay]") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Graph graph = random_graph(seed, 1 + static_cast<int>(seed % 60));
    const IssuePlan plan = plan_issue(graph);
    Machine machine(graph, plan.events, seed);
    issue(plan, machine);
    machine.finish();
    check_execution(graph, machine);
  }
}

TEST_CASE("a host thread at work of its own keeps no device waiting that could have been given work", "[replay]") {
  // As overlap-compute-and-copy: two products, two allocations on the host, and a copy for each pair. The products are
  // handed over first; each copy as soon as its allocation is done, before the host turns to the next one.
  Graph graph;
  graph.resources = {
      {"gpu0", Resource::Kind::stream, 0}, {"cpu", Resource::Kind::host, 0}, {"gpu0:d2h", Resource::Kind::copies, 0}};
  graph.blocks = {kernel(), host(HostAction::page_lock), {"copy", "communication", 1.0, {CopyWork{}}}};
  graph.tasks = {{0, 0, {}}, {0, 0, {}},     {1, 1, {}},  // products 0 and 1, allocation 2
                 {1, 1, {}}, {2, 2, {0, 2}}, {2, 2, {1, 3}}};
  CHECK(order_of(plan_issue(graph)) == std::vector<int>{0, 1, 2, 4, 3, 5});
}

TEST_CASE("events are there where streams meet, and nowhere else", "[replay]") {
  Graph graph;
  graph.resources = {{"gpu0", Resource::Kind::stream, 0}, {"gpu0:stream1", Resource::Kind::stream, 0}};
  graph.blocks = {kernel()};
  // 0 → 1 on one stream need none. 3 waits for 1, and so for 0 too: 2 waits for 0 first, then one wait more is needed.
  graph.tasks = {{0, 0, {}}, {0, 0, {0}}, {0, 1, {0}}, {0, 1, {1}}, {0, 1, {0, 1}}};
  const IssuePlan plan = plan_issue(graph);
  CHECK(plan.events == 2);
  CHECK(std::ranges::count_if(plan.operations,
                              [](const Operation& o) { return o.kind == Operation::Kind::stream_waits; }) == 2);
}

TEST_CASE("kernels that a dispatch hands over as one graph are launched at once", "[replay]") {
  Graph graph;
  graph.resources = {
      {"gpu0", Resource::Kind::stream, 0}, {"cpu", Resource::Kind::host, 0}, {"launches", Resource::Kind::path, 0}};
  graph.blocks = {kernel(), host(HostAction::dispatch, 3, true), host(HostAction::launch)};
  graph.tasks = {{1, 1, {}}, {2, 2, {0}}, {0, 0, {1}}, {0, 0, {}}, {0, 0, {}}};
  const IssuePlan plan = plan_issue(graph);
  REQUIRE(plan.operations.size() == 2);  // the dispatch, and the graph
  CHECK(plan.operations[1].kind == Operation::Kind::graph);
  CHECK(plan.operations[1].task == 2);
  CHECK(plan.operations[1].count == 3);
  // A kernel of the graph that waits for another one cannot be in it.
  graph.tasks[4].after = {2};
  CHECK_THROWS_WITH(plan_issue(graph), Catch::Contains("task 4: it does not follow task 3"));
}

TEST_CASE("of tasks that could all be handed over, the one that comes first in the list is the first", "[replay]") {
  // Three streams; the order of tasks is none of the resources'.
  Graph graph;
  graph.resources = {
      {"a", Resource::Kind::stream, 0}, {"b", Resource::Kind::stream, 0}, {"c", Resource::Kind::stream, 0}};
  graph.blocks = {kernel()};
  for (const int resource : {2, 0, 1, 0, 2, 1}) {
    Task task;
    task.resource = resource;
    graph.tasks.push_back(task);
  }
  CHECK(order_of(plan_issue(graph)) == std::vector<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("What is handed over is counted by launches, not by tasks", "[replay]") {
  // One task of two kinds of kernels, 4 and 32 launches, then a copy on another stream that waits for it: an event is
  // recorded and waited for. 36 + 1 + 1 + 1.
  Graph graph;
  graph.resources = {{"gpu0", Resource::Kind::stream, 0}, {"gpu0:d2h", Resource::Kind::copies, 0}};
  graph.blocks = {{"pass", "compute", 1.0, {KernelWork{"a", "traffic", {}, 4}, KernelWork{"b", "traffic", {}, 32}}},
                  {"c", "communication", 1.0, {CopyWork{}}}};
  graph.tasks = {{0, 0, {}}, {1, 1, {0}}};
  CHECK(calls_of(graph, plan_issue(graph)) == 39);
  graph.replicated = true;  // on each of two GPUs
  graph.gpus = 2;
  CHECK(calls_of(graph, plan_issue(graph)) == 78);
}

TEST_CASE("A framework's thread is a host thread: its dispatch stands before what it hands over", "[replay]") {
  Graph graph;
  graph.resources = {{"gpu0", Resource::Kind::stream, 0}, {"dispatch", Resource::Kind::framework, 0}};
  graph.blocks = {kernel(), host(HostAction::dispatch, 1)};
  graph.tasks = {{1, 1, {}}, {0, 0, {0}}, {1, 1, {}}, {0, 0, {2}}};
  const IssuePlan plan = plan_issue(graph);
  std::vector<int> order;
  for (const Operation& operation : plan.operations) order.push_back(operation.task);
  CHECK(order == std::vector<int>{0, 1, 2, 3});
  CHECK(plan.streams == std::vector<int>{0});
}
