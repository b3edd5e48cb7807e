// Training steps as what processes on hosts do; and, as root, done.
#include "validate/host_replay/step_plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>

#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "validate/host_replay/replay.hpp"

using namespace foretrain;

namespace {

/// The MLP's 512 x 256 + 256 x 128 + 128 x 2 weights and as many biases as outputs: 164,482 numbers.
constexpr std::int64_t mlp_numbers = 512 * 256 + 256 + 256 * 128 + 128 + 128 * 2 + 2;

Scenario training(const char* base, std::vector<std::string> overrides) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
  setenv("FORETRAIN_HOST_PROGRAMS", FORETRAIN_HOST_FOLDER, 1);
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
std::int64_t exchanged(const std::vector<StepTask>& tasks) {
  std::int64_t sum = 0;
  for (const StepTask& t : tasks) sum += t.exchanged.count;
  return sum;
}

HostMeasurement measured_step(HostReplayer& replayer, const Scenario& scenario, HostExecutor executor) {
  ReplayOptions options;
  options.executor = executor;
  options.repetitions = 3;
  options.predicted = estimate(scenario).time();
  HostMeasurement run = replayer.run(plan_replay(scenario, options));
  run.predicted = options.predicted;
  return run;
}

bool can_have_hosts() {
  static const std::string why = why_no_namespaces();
  static const bool told = [] {
    if (!why.empty()) std::cerr << "skipped: " << why << "\n";
    return true;
  }();
  (void)told;
  return why.empty();
}

}  // namespace

TEST_CASE("a rank is busy for as long as it is predicted to compute, and exchanges every gradient once", "[host]") {
  for (const Scenario& scenario : {ring_training(), server_training()}) {
    const StepPlan plan = plan_step(scenario);
    const Result predicted = estimate(scenario);
    CHECK(plan.ranks == 2);
    CHECK(plan.elements == mlp_numbers);
    for (const std::vector<StepTask>& tasks : plan.tasks) {
      CHECK(exchanged(tasks) == mlp_numbers);
      const Seconds computes = predicted.time() - predicted.train()->breakdown.exposed_communication;
      CHECK(busy_seconds(tasks) == Approx(computes.value()).epsilon(0.03));
    }
  }
}

TEST_CASE("buckets are exchanged beside the backward pass, which goes on meanwhile", "[host]") {
  // Buckets of 100 kB: the last layers' gradients and the first layer's, which alone are 525 kB.
  const StepPlan plan = plan_step(ring_training({"plan.sync.bucket=100 KB"}));
  const std::vector<StepTask>& tasks = plan.tasks.front();
  const auto exchanges = [](const StepTask& task) { return task.exchanged.count > 0; };
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

TEST_CASE("a rank with a slower device is busy for longer", "[host]") {
  const StepPlan plan = plan_step(ring_training({"cluster.faults=[{ node: 1, gpu: 0, speed: 50% }]"}));
  // All but the host's work between steps, which is the same, takes twice as long.
  const double usual = busy_seconds(plan.tasks[0]) - plan.tasks[0].back().seconds;
  CHECK(busy_seconds(plan.tasks[1]) - plan.tasks[1].back().seconds == Approx(2.0 * usual).epsilon(0.1));
  const StepPlan servers = plan_step(server_training({"plan.sync.slow_workers={ count: 1, factor: 3 }"}));
  CHECK(servers.tasks[1].front().seconds == Approx(3.0 * servers.tasks[0].front().seconds));
}

TEST_CASE("steps that hosts cannot do are refused at their key", "[host]") {
  using Catch::Contains;
  CHECK_THROWS_WITH(plan_step(ring_training({"plan.sync.compression=fp16"})), Contains("plan.sync.compression"));
  CHECK_THROWS_WITH(plan_step(server_training({"plan.sync.consistency=asynchronous", "plan.sync.barrier=false"})),
                    Contains("plan.sync.consistency"));
  CHECK_THROWS_WITH(plan_step(server_training({"plan.sync.overlap=true"})), Contains("plan.sync.overlap"));
  ReplayOptions gloo;
  gloo.executor = HostExecutor::gloo;
  CHECK_THROWS_WITH(plan_replay(ring_training(), gloo), Contains("workload.train"));
}

TEST_CASE("a step by a ring and one by a server take at least what is computed and sent, with exact sums",
          "[host][network]") {
  if (!can_have_hosts()) return;
  HostReplayer replayer;
  // 658 kB of gradients at 100 Mbit/s: 53 ms with headers for the ring of two, four times half as much for the server,
  // which two workers push to and pull from. Cards let nothing pass faster (less their buckets: 5 %).
  const double seconds = 1.05 * 4.0 * mlp_numbers / 12.5e6;
  const HostMeasurement ring = measured_step(replayer, ring_training(), HostExecutor::own);
  const HostMeasurement server = measured_step(replayer, server_training(), HostExecutor::server);
  const double computed = busy_seconds(plan_step(server_training()).tasks.front());
  INFO(ring.median().value() << " " << ring.predicted.value() << " " << server.median().value() << " "
                             << server.predicted.value());
  CHECK(ring.median().value() > 0.9 * seconds);
  CHECK(server.median().value() > 0.9 * (computed + 4.0 * seconds));
  // No load of others makes it as long as this.
  CHECK(ring.median() < 10.0 * ring.predicted);
  CHECK(server.median() < 10.0 * server.predicted);
  // One worker's card at half the rate.
  const char* slow = "cluster.faults=[{ node: 0, link: \"nic0>fabric\", bandwidth: 50 Mbit/s }]";
  CHECK(measured_step(replayer, ring_training({slow}), HostExecutor::own).median().value() > 0.9 * 2.0 * seconds);
}
