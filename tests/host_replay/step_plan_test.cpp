// Training steps as what processes on hosts do; and, as root, done.
#include "validate/host_replay/replay_plan.hpp"

#include <fmt/ranges.h>

#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/host_replay/can_have_hosts.hpp"
#include "validate/host_replay/replay.hpp"

using namespace foretrain;

namespace {

/// The MLP's 512 x 256 + 256 x 128 + 128 x 2 weights and as many biases as outputs: 164,482 numbers.
constexpr std::int64_t mlp_numbers = 512 * 256 + 256 + 256 * 128 + 128 + 128 * 2 + 2;

Scenario training(const char* base, std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), {"cluster.node=host-veth", "workload.train.model=mlp-d2l",
                                       "workload.train.micro_batch=256", "cluster.network.nic_bandwidth=100 Mbit/s"});
  return load_scenario(base, overrides);
}
Scenario ring_training(std::vector<std::string> overrides = {}) {
  return training("data-parallel-hosts", std::move(overrides));
}
Scenario server_training(std::vector<std::string> overrides = {}) {
  return training("servers-hosts", std::move(overrides));
}

double busy_seconds(const std::vector<StepTask>& tasks) {
  return std::accumulate(tasks.begin(), tasks.end(), 0.0,
                         [](double sum, const StepTask& t) { return sum + t.seconds; });
}
bool exchanges(const StepTask& task) { return task.exchange >= 0; }

/// Of each stream, who sends how much to whom, in a rank's order; between two ranks alone.
using Messages = std::map<int, std::vector<std::int64_t>>;
Messages between(const ReplayPlan& plan, int rank, int source, int destination) {
  Messages messages;
  for (const StepTask& task : plan.task.steps[static_cast<std::size_t>(rank)]) {
    if (!exchanges(task)) continue;
    for (const Exchange::Phase& phase : plan.task.exchanges[static_cast<std::size_t>(task.exchange)].phases) {
      for (int turn = 0; turn < phase.repeat; ++turn) {
        for (const Exchange::Message& m : phase.messages) {
          if (m.source == source && m.destination == destination) messages[task.stream].push_back(m.bytes);
        }
      }
    }
  }
  return messages;
}

/// A small transformer on four hosts by this plan.
Scenario divided(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(),
                   {"cluster.nodes=4", "workload.train.micro_batch=1", "workload.train.global_batch=8",
                    "workload.train.model={ preset: gpt2, layers: 8, hidden: 64, heads: 4, vocabulary: 512, "
                    "sequence: 32, tied_embeddings: false }"});
  return ring_training(std::move(overrides));
}

constexpr const char* clips = "workload.train.clip_gradients=true";

/// Every way to divide a model, with what makes four ranks of it.
const std::vector<std::vector<std::string>> ways = {
    {"plan.data=1", "plan.tensor=4"},
    {"plan.data=1", "plan.tensor=4", "plan.sequence_parallel=true"},
    {"plan.data=1", "plan.context=4"},
    {"plan.data=1", "plan.pipeline=4", "plan.schedule=gpipe"},
    {"plan.data=1", "plan.pipeline=4", "plan.schedule=1f1b"},
    {"plan.data=1", "plan.pipeline=4", "plan.schedule=interleaved", "plan.interleave=2"},
    {"plan.data=1", "plan.pipeline=4", "plan.schedule=zero_bubble"},
    {"plan.data=1", "plan.pipeline=4", "plan.schedule=dualpipe", clips},
    {"plan.data=4", "plan.zero=1"},
    {"plan.data=4", "plan.zero=3"},
    {"plan.data=4", "plan.zero={ stage: 3, shard: 2 }"},
    {"plan.data=2", "plan.tensor=2"},
    {"plan.data=2", "plan.pipeline=2", "plan.schedule=1f1b"},
};

HostMeasurement measured_step(HostReplayer& replayer, const Scenario& scenario) {
  const ReplayOptions options{.repetitions = 3, .predicted = estimate(scenario).time()};
  HostMeasurement run = replayer.run(plan_replay(scenario, options));
  run.predicted = options.predicted;
  return run;
}

}  // namespace

TEST_CASE("a rank is busy for as long as it is predicted to compute, and sends every gradient", "[host]") {
  for (const Scenario& scenario : {ring_training(), server_training()}) {
    const ReplayPlan plan = plan_step(scenario);
    const Result predicted = estimate(scenario);
    CHECK(plan.task.ranks == 2);
    // A ring of two: half of the gradients there and half of the sums back; a server has them all.
    CHECK(plan.sent.value() == Approx(4.0 * mlp_numbers).epsilon(1e-3));
    for (const std::vector<StepTask>& tasks : plan.task.steps) {
      const Seconds computes = predicted.time() - predicted.train()->breakdown.exposed_communication;
      CHECK(busy_seconds(tasks) == Approx(computes.value()).epsilon(0.03));
    }
  }
  CHECK(plan_step(server_training()).task.elements == mlp_numbers);
}

TEST_CASE("buckets are exchanged beside the backward pass, which goes on at the same time", "[host]") {
  // Buckets of 100 kB: the last layers' gradients and the first layer's, which alone are 525 kB.
  const ReplayPlan plan = plan_step(ring_training({"plan.sync.bucket=100 KB"}));
  const std::vector<StepTask>& tasks = plan.task.steps.front();
  REQUIRE(std::ranges::count_if(tasks, exchanges) >= 2);
  const auto first = std::ranges::find_if(tasks, exchanges);
  const auto computes_after = [&](const StepTask& task) {
    return !exchanges(task) && task.seconds > 0.0 && task.stream != first->stream &&
           std::ranges::count(task.after, static_cast<int>(first - tasks.begin())) == 0;
  };
  CHECK(std::any_of(first, tasks.end(), computes_after));
  // The last thing that is exchanged is waited for before the optimizer.
  CHECK_FALSE(tasks[tasks.size() - 2].after.empty());
}

TEST_CASE("two ranks see the same messages between them, stream by stream and in the same order", "[host]") {
  for (const std::vector<std::string>& way : ways) {
    INFO(fmt::format("{}", fmt::join(way, " ")));
    const ReplayPlan plan = plan_step(divided(way));
    REQUIRE(plan.task.ranks == 4);
    std::size_t messages = 0;
    for (int source = 0; source < 4; ++source) {
      for (int destination = 0; destination < 4; ++destination) {
        const Messages sent = between(plan, source, source, destination);
        CHECK(sent == between(plan, destination, source, destination));
        messages += sent.size();
      }
    }
    CHECK(messages > 0);
  }
}

TEST_CASE("all that is predicted to be computed is, by the rank with the most", "[host]") {
  for (const std::vector<std::string>& way : ways) {
    INFO(fmt::format("{}", fmt::join(way, " ")));
    const Scenario scenario = divided(way);
    const Breakdown predicted = estimate(scenario).train()->breakdown;
    double most = 0.0;
    for (const std::vector<StepTask>& tasks : plan_step(scenario).task.steps)
      most = std::max(most, busy_seconds(tasks));
    const Seconds work = predicted.compute + predicted.optimizer + predicted.host_overhead;
    CHECK(most == Approx(work.value()).epsilon(0.02));
  }
}

TEST_CASE("where gradients are clipped, every rank's update waits for one number of all others", "[host]") {
  for (const bool clipped : {false, true}) {
    const ReplayPlan plan =
        plan_step(divided({"plan.data=1", "plan.pipeline=4", clipped ? clips : "workload.train.clip_gradients=false"}));
    const TaskId norm = plan.graph->graph.synchronised;
    for (std::size_t rank = 0; rank < plan.task.steps.size(); ++rank) {
      const std::vector<TaskId>& numbers = plan.graph->tasks[rank];
      const auto at = static_cast<std::size_t>(std::ranges::find(numbers, norm) - numbers.begin());
      REQUIRE(at < numbers.size());
      CHECK(exchanges(plan.task.steps[rank][at]) == clipped);
      CHECK(plan.task.steps[rank][at].seconds == 0.0);
      // The optimizer is the next task of the rank, before the host's work between steps.
      CHECK(std::ranges::find(plan.task.steps[rank][at + 1].after, static_cast<int>(at)) !=
            plan.task.steps[rank][at + 1].after.end());
    }
  }
}

TEST_CASE("a rank with a slower device is busy for longer", "[host]") {
  const ReplayPlan plan = plan_step(ring_training({"cluster.faults=[{ node: 1, gpu: 0, speed: 50% }]"}));
  // All but the host's work between steps, which is the same, takes twice as long.
  const double usual = busy_seconds(plan.task.steps[0]) - plan.task.steps[0].back().seconds;
  CHECK(busy_seconds(plan.task.steps[1]) - plan.task.steps[1].back().seconds == Approx(2.0 * usual).epsilon(0.1));
  const ReplayPlan servers = plan_step(server_training({"plan.sync.slow_workers={ count: 1, factor: 3 }"}));
  CHECK(servers.task.steps[1].front().seconds == Approx(3.0 * servers.task.steps[0].front().seconds));
}

TEST_CASE("steps that hosts cannot do are refused at their key", "[host]") {
  using Catch::Contains;
  CHECK_THROWS_WITH(plan_step(ring_training({"plan.sync.compression=fp16"})), Contains("plan.sync.compression"));
  CHECK_THROWS_WITH(plan_step(divided({"plan.data=2", "plan.tensor=2", "plan.sync.algorithm=parameter_server"})),
                    Contains("through a host's memory"));
  CHECK_THROWS_WITH(plan_step(server_training({"plan.sync.overlap=true"})), Contains("plan.sync.overlap"));
  const Scenario apart = server_training({"plan.sync.consistency=asynchronous", "plan.sync.barrier=false"});
  CHECK_THROWS_WITH(plan_step(apart), Contains("plan.sync.consistency"));
}

TEST_CASE("a step by a ring and one by a server take at least what is computed and sent, with exact sums",
          "[host][network]") {
  if (!can_have_hosts()) return;
  HostReplayer replayer;
  // 658 kB of gradients at 100 Mbit/s: 53 ms with headers for the ring of two, four times half as much for the server,
  // which two workers push to and pull from. Cards let nothing pass faster (less their buckets: 5 %).
  const double seconds = 1.05 * 4.0 * mlp_numbers / 12.5e6;
  const HostMeasurement ring = measured_step(replayer, ring_training());
  const HostMeasurement server = measured_step(replayer, server_training());
  const double computed = busy_seconds(plan_step(server_training()).task.steps.front());
  INFO(ring.median().value() << " " << ring.predicted.value() << " " << server.median().value() << " "
                             << server.predicted.value());
  CHECK(ring.median().value() > 0.9 * seconds);
  CHECK(server.median().value() > 0.9 * (computed + 4.0 * seconds));
  // No load of others makes it as long as this.
  CHECK(ring.median() < 10.0 * ring.predicted);
  CHECK(server.median() < 10.0 * server.predicted);
  // One worker's card at half the rate.
  const char* slow = "cluster.faults=[{ node: 0, link: \"nic0>fabric\", bandwidth: 50 Mbit/s }]";
  CHECK(measured_step(replayer, ring_training({slow})).median().value() > 0.9 * 2.0 * seconds);
}

TEST_CASE("a schedule that no framework runs on processors takes its predicted time between hosts", "[host][network]") {
  if (!can_have_hosts()) return;
  HostReplayer replayer;
  const Scenario scenario = divided({"plan.data=1", "plan.pipeline=4", "plan.schedule=dualpipe", clips});
  const ReplayPlan plan = plan_step(scenario);
  const HostMeasurement run = measured_step(replayer, scenario);
  REQUIRE(run.execution);
  const Execution& execution = *run.execution;
  const TaskGraph& graph = plan.graph->graph.graph;
  // No task was done before those that it waits for were, and none was left out. Of what several ranks do: had begun on
  // the last of them, as a rank that sends may note that it has after the receiver has gone on.
  for (TaskId task = 0; task < static_cast<TaskId>(graph.tasks().size()); ++task) {
    const auto at = static_cast<std::size_t>(task);
    CHECK(execution.finish[at] >= execution.start[at]);
    CHECK(execution.finish[at].value() > 0.0);
    const bool of_one_rank = !graph.block_of(task).flows && task != plan.graph->graph.synchronised;
    for (const TaskId next : graph.successors(task)) {
      CHECK(execution.finish[static_cast<std::size_t>(next)] >=
            (of_one_rank ? execution.finish[at] : execution.start[at]));
    }
  }
  double most = 0.0;
  for (const std::vector<StepTask>& tasks : plan.task.steps) most = std::max(most, busy_seconds(tasks));
  CHECK(run.median().value() > most);
  REQUIRE(run.waiting);
  CHECK(run.waiting->value() > 0.0);
  CHECK(*run.waiting < run.median());
  CHECK(run.median() < 10.0 * run.predicted);  // no load of others makes it as long as this
}

TEST_CASE("leaves share a cable, and hosts that were on leaves find each other without them", "[host][network]") {
  if (!can_have_hosts()) return;
  HostReplayer replayer;
  const auto time = [&](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {"workload.collective.operation=all_to_all",
                                          "workload.collective.algorithm=auto", "workload.collective.size=1 MB",
                                          "cluster.network.nic_bandwidth=200 Mbit/s"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return measured_step(replayer, load_scenario("replay-hosts", overrides)).median().value();
  };
  // Two of a leaf's ranks send two quarters each over a cable of 40 Mbit/s: 1 MB, 200 ms (less the buckets).
  CHECK(time({"cluster.network.fabric={ kind: fat_tree, nodes_per_leaf: 2, oversubscription: 10 }"}) > 0.9 * 0.2);
  // Three quarters through a card of 200 Mbit/s: 30 ms.
  const double one_switch = time({});
  CHECK(one_switch > 0.9 * 0.03);
  CHECK(one_switch < 10 * 0.03);
}
