// R11: parameter servers over many machines: where their time goes, what sharding, priorities, staleness and placement
// change, and when a ring is better.
#include "model/parameter_server/server_graph.hpp"
#include "tests/sim/predicted.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

Result result_of(const std::string& scenario, const Overrides& overrides = {}) {
  return predicted(scenario, Fidelity::flows, overrides);
}
const ParameterServerResult& servers_of(const Result& result) { return *result.train()->parameter_server; }
double flow_ms(const std::string& scenario, const Overrides& overrides = {}) {
  return milliseconds(scenario, Fidelity::flows, overrides);
}

/// 25 Gbit/s of which TCP carries 85 %.
constexpr double card = 25e9 / 8.0 * 0.85;
/// Cards that read and write memory of either side: no connection of 5 Gbit/s and no host's calls limit what they
/// carry.
const std::string no_calls = "cluster.network={ efficiency: 0.85, transport: { protocol: roce } }";
constexpr double resnet_bytes = 4.0 * 25.557032e6;
constexpr double vgg_bytes = 4.0 * 138.357544e6;

/// Workers whose messages and updates take about as long as their passes.
double small_step(const std::string& machines, const std::string& sync, Fidelity fidelity) {
  return predict(
             load_scenario_text("cluster: { node: dgx-a100-80gb, " + machines +
                                    " }\nplan: { sync: { algorithm: parameter_server, " + sync +
                                    " } }\nworkload: { train: { model: resnet-18, precision: fp16, micro_batch: 8 } }",
                                "small.yaml"),
             fidelity)
      .time()
      .value();
}

}  // namespace

TEST_CASE("R11: with one server the step grows with the workers") {
  // n workers push n · 102 MB into one card, 38.5 ms each. The step of 8 and 16 workers differs by 8 of them. Pushing,
  // and not computing (195 ms), is then the limit: pulls run the other way at the same time, except the last group's.
  const auto step = [](int workers) {
    return flow_ms("servers-one-server", {"cluster.nodes=" + std::to_string(workers + 1), no_calls});
  };
  const double per_worker = resnet_bytes / card * 1e3;
  CHECK(per_worker == Approx(38.5).epsilon(0.01));
  CHECK((step(16) - step(8)) / 8.0 == Approx(per_worker).epsilon(0.15));
  CHECK((step(32) - step(16)) / 16.0 == Approx(per_worker).epsilon(0.15));
  CHECK(step(16) > 16.0 * per_worker);
  // Two workers hide behind computing.
  const Result eight = result_of("servers-one-server", {no_calls});
  CHECK(step(2) < 1.05 * servers_of(eight).compute_bound.value() * 1e3);
}

TEST_CASE("R11: several servers share the load") {
  // Four cards instead of one: 77 ms of pushing behind 130 ms of backward pass.
  const Result sharded = result_of("servers-sharded-servers", {no_calls});
  CHECK(servers_of(sharded).imbalance < 1.05);
  CHECK(servers_of(sharded).link_bound.value() == Approx(8.0 * resnet_bytes / 4.0 / card).epsilon(0.05));
  CHECK(sharded.time() < 1.05 * servers_of(sharded).compute_bound);
  CHECK(flow_ms("servers-one-server", {no_calls}) > 1.8 * sharded.time().value() * 1e3);
}

TEST_CASE("R11: keys placed by hash and never cut leave a server with fc6") {
  // fc6 is 102.8 of 138.4 million parameters: 2.97 times the mean of four servers, and the time follows.
  const Result hashed = result_of("servers-hashed-keys");
  const Result balanced = result_of("servers-hashed-keys", {"plan.sync.assignment=balanced", "plan.sync.split=4 MB"});
  CHECK(servers_of(hashed).imbalance >= 4.0 * 102.76 / 138.36);
  CHECK(servers_of(balanced).imbalance < 1.02);
  CHECK(servers_of(hashed).link_bound / servers_of(balanced).link_bound ==
        Approx(servers_of(hashed).imbalance / servers_of(balanced).imbalance).epsilon(0.01));
  CHECK(hashed.time() > servers_of(hashed).link_bound);
  CHECK(hashed.time() > 2.5 * balanced.time());
}

TEST_CASE("R11: adding up inside machines first takes the local GPUs' bytes off the network") {
  // 4 machines · 553 MB over 4 servers' cards, 208 ms; with each of 32 GPUs pushing for itself eight times that.
  const Result local = result_of("servers-hierarchical-servers");
  const Result every = result_of("servers-hierarchical-servers", {"plan.sync.local_reduce=false"});
  CHECK(servers_of(local).workers == 4);
  CHECK(servers_of(every).workers == 32);
  CHECK(servers_of(local).link_bound.value() == Approx(vgg_bytes / card).epsilon(0.02));
  CHECK(servers_of(every).link_bound / servers_of(local).link_bound == Approx(8.0).epsilon(0.01));
  CHECK(every.time() > 5.0 * local.time());
}

TEST_CASE("R11: servers beside the workers share their cards, dedicated ones do not") {
  // A worker's card sends its push to 7 others and its server's weights to 7 others: 2 · 7/8 of the model each way,
  // against once with a dedicated server for every worker.
  const Result shared = result_of("servers-colocated-servers");
  const Result dedicated =
      result_of("servers-colocated-servers", {"cluster.nodes=16", "plan.sync.placement=dedicated"});
  CHECK(servers_of(shared).link_bound.value() == Approx(2.0 * 7.0 / 8.0 * vgg_bytes / card).epsilon(0.02));
  CHECK(servers_of(dedicated).link_bound.value() == Approx(vgg_bytes / card).epsilon(0.02));
  CHECK(shared.time() > 1.2 * dedicated.time());
}

TEST_CASE("R11: a slow worker stops synchronous and bounded training, not asynchronous") {
  const auto run = [](const std::string& consistency) {
    return result_of("servers-slow-worker", {"plan.sync.consistency=" + consistency, no_calls});
  };
  const Result asynchronous = run("asynchronous");
  const Result synchronous = run("synchronous");
  // Computing alone: all wait for one of double length; or 8 / (7 + 1/2) = 1.067 of the usual, which is that of the
  // usual GPU and not of the slowest of eight.
  const double usual = flow_ms("servers-sharded-servers", {no_calls});
  const auto own_pace = [&](const std::string& consistency) {
    return flow_ms("servers-sharded-servers", {"plan.sync.consistency=" + consistency, no_calls});
  };
  CHECK(synchronous.time().value() * 1e3 == Approx(2.0 * usual).epsilon(0.02));
  CHECK(asynchronous.time().value() * 1e3 == Approx(8.0 / 7.5 * own_pace("asynchronous")).epsilon(0.02));
  CHECK(run("bounded(2)").time().value() == Approx(synchronous.time().value()).epsilon(0.02));
  CHECK(run("bounded(0)").time() == synchronous.time());
  const Result hardly_bounded = run("bounded(1000)");
  CHECK(hardly_bounded.time() == asynchronous.time());
  CHECK(hardly_bounded.warnings.size() == asynchronous.warnings.size() + 1);

  // A fast worker sees the updates of six equals and half of the slow one's: 6 or 7. While the slow one computes, seven
  // others apply two each: 14.
  CHECK(servers_of(synchronous).staleness->max == 0.0);
  const ParameterServerResult::Staleness& staleness = *asynchronous.train()->parameter_server->staleness;
  CHECK(staleness.p50 >= 6.0);
  CHECK(staleness.p50 <= 7.0);
  CHECK(staleness.max >= 13.0);
  CHECK(staleness.max <= 15.0);
}

TEST_CASE("R11: bounded workers whose servers are busy take turns, until the slow ones hold up all others") {
  // Two servers that sixteen workers keep busy for 82 ms a step. Workers that take turns there need no more; let go
  // together by the slow ones, they leave the servers at rest while all compute. Either way repeats to the last digit;
  // which of the two comes about hangs on their speeds, and slower ones may be faster: 100 ms become 82 here.
  const auto step = [](const char* factor) {
    const Scenario scenario =
        load_scenario_text(R"(
cluster: { node: dgx-a100-80gb, nodes: 2 }
plan:
  data: 16
  sync: { algorithm: parameter_server, servers: 2, placement: cpu, consistency: bounded(2), slow_workers: { count: 8, factor: 2 } }
workload:
  train:
    model: { family: gpt, layers: 4, hidden: 1024, heads: 8, vocabulary: 16000, sequence: 2048 }
    micro_batch: 4
    global_batch: 64
)",
                           "turns.yaml", {std::string("plan.sync.slow_workers.factor=") + factor});
    const Result result = predict(scenario, Fidelity::flows);
    CHECK(result.time() >= servers_of(result).server_bound);
    return result.time().value();
  };
  const double equal = step("1"), turns = step("1.8"), together = step("1.5");
  CHECK(turns == Approx(equal).epsilon(0.005));
  CHECK(together > equal);
  CHECK(together < 1.25 * equal);
}

TEST_CASE("R11: the more workers may be apart, the less they wait, and the staler their updates") {
  // Lognormal iterations of standard deviation 20 %: the slowest of eight takes about 1.3 times the mean.
  std::vector<double> times, staleness;
  for (const char* consistency : {"synchronous", "bounded(1)", "bounded(3)", "asynchronous"}) {
    const Result result = result_of("servers-jitter", {std::string("plan.sync.consistency=") + consistency});
    times.push_back(result.time().value());
    staleness.push_back(servers_of(result).staleness->mean);
  }
  for (std::size_t i = 1; i < times.size(); ++i) {
    INFO(i);
    CHECK(times[i] <= times[i - 1] * 1.01);  // samples of 50 iterations
    CHECK(staleness[i] >= staleness[i - 1] - 0.2);
  }
  CHECK(times.front() > 1.2 * times.back());
  // In one own iteration each of the seven others makes one update, on average.
  CHECK(staleness.back() == Approx(7.0).epsilon(0.1));
  // Never more than each other's lead and lag: (n − 1)(2k + 1).
  const ParameterServerResult::Staleness one =
      *result_of("servers-jitter", {"plan.sync.consistency=bounded(1)"}).train()->parameter_server->staleness;
  CHECK(one.max <= 7 * 3);
}

TEST_CASE("R11: first layers first lets the next forward pass begin before fc6 has arrived") {
  const Result first = result_of("servers-priorities", {no_calls});
  const double arrival = flow_ms("servers-priorities", {"plan.sync.priority=arrival", no_calls});
  // In order of arrival the first layer's weights come last: a step is pushing everything, then a whole forward pass.
  // By priority only what lies before fc6 in both passes is not hidden.
  CHECK(arrival > 1.2 * first.time().value() * 1e3);
  CHECK(first.time() > servers_of(first).link_bound);
  // A barrier between steps costs more than either.
  CHECK(flow_ms("servers-priorities", {"plan.sync.priority=arrival", "plan.sync.barrier=true", no_calls}) > arrival);
}

TEST_CASE("R11: with spare machines servers beat a ring, over NVLink they lose against it") {
  // Servers: 553 MB each way per worker, at the same time: 208 ms. Ring: 2 · 7/8 of them, 364 ms.
  const double servers = flow_ms("servers-server-beats-ring");
  const double ring = flow_ms("servers-server-beats-ring", {"cluster.nodes=8", "plan.sync={ algorithm: ring }"});
  CHECK(servers > vgg_bytes / card * 1e3);
  CHECK(ring > 2.0 * 7.0 / 8.0 * vgg_bytes / card * 1e3);
  CHECK(servers < 0.7 * ring);
  CHECK(flow_ms("servers-ring-beats-server", {"plan.sync={ algorithm: ring }"}) <
        0.85 * flow_ms("servers-ring-beats-server"));
}

TEST_CASE("R11: estimate and simulation agree, and no step is below its bounds") {
  for (const char* scenario :
       {"servers-one-server", "servers-sharded-servers", "servers-hashed-keys", "servers-hierarchical-servers",
        "servers-colocated-servers", "servers-slow-worker", "servers-priorities", "servers-server-beats-ring"}) {
    INFO(scenario);
    const Result flows = result_of(scenario);
    const Result estimate = predicted(scenario, Fidelity::estimate);
    CHECK(estimate.time().value() == Approx(flows.time().value()).epsilon(0.2));
    for (const Result* result : {&flows, &estimate}) {
      const ParameterServerResult& bounds = *result->train()->parameter_server;
      CHECK(result->time() >= 0.995 * std::max({bounds.compute_bound, bounds.link_bound, bounds.server_bound}));
      CHECK(result->train()->breakdown.total().value() == Approx(result->time().value()));
      CHECK(bounds.link_utilisation <= 1.0);
    }
    if (std::string(scenario) == "servers-slow-worker") continue;  // longest, and the same in steps
    CHECK(milliseconds(scenario, Fidelity::steps) == Approx(flows.time().value() * 1e3).epsilon(0.02));
  }
}

TEST_CASE("R11: an estimate never falls with a slower worker, nor rises with more bandwidth or another server") {
  for (const char* consistency : {"synchronous", "asynchronous", "bounded(2)"}) {
    for (const char* priority : {"arrival", "first_layer"}) {
      for (const int nodes : {2, 8}) {
        double with_fewer_servers = 1e9;
        for (const int servers : {1, 2, 4, 8, 16}) {
          const auto step = [&](int gbits, int count, double factor) {
            const std::string machines = fmt::format(
                "nodes: {}, network: {{ nics_per_node: 1, nic_bandwidth: {} Gbit/s }}", nodes + servers, gbits);
            const std::string sync = fmt::format(
                "servers: {}, placement: dedicated, priority: {}, consistency: {}, slow_workers: {{ count: {}, "
                "factor: {} }}",
                servers, priority, consistency, count, factor);
            return small_step(machines, sync, Fidelity::estimate);
          };
          CAPTURE(consistency, priority, nodes, servers);
          const double equal = step(25, 0, 1.0);
          CHECK(step(100, 0, 1.0) <= equal * (1.0 + 1e-9));
          CHECK(equal <= with_fewer_servers * (1.0 + 1e-9));
          with_fewer_servers = equal;
          for (const double factor : {1.01, 1.5, 2.0}) {
            double with_fewer = equal;
            for (const int count : {1, 4 * nodes, 8 * nodes}) {
              const double slow = step(25, count, factor);
              CHECK(slow >= with_fewer * (1.0 - 1e-9));
              CHECK(step(100, count, factor) <= slow * (1.0 + 1e-9));
              with_fewer = slow;
            }
          }
        }
      }
    }
  }
}

TEST_CASE("R11: machines that add up first may also be apart, and servers may be GPUs") {
  // Asynchronous, equal machines: nobody waits for anybody; the bound of the servers' cards stays.
  const Result local = result_of("servers-hierarchical-servers", {"plan.sync.consistency=asynchronous"});
  CHECK(servers_of(local).workers == 4);
  CHECK(local.time() >= 0.99 * servers_of(local).link_bound);
  CHECK(local.time() < 1.1 * result_of("servers-hierarchical-servers").time());
  // The algorithm's own name says the same.
  CHECK(result_of("servers-hierarchical-servers", {"plan.sync={ algorithm: hierarchical_parameter_server, servers: 4, "
                                                   "placement: dedicated }"})
            .time() == result_of("servers-hierarchical-servers").time());
  // Four of eight GPUs as servers. Of the other socket's four workers NVLink joins each to one of them. A quarter of
  // the model goes to each of the other three, through the processors, which let GPUs send each other 6 GB/s.
  const Overrides gpus = {"plan.sync.placement=gpu", "plan.sync.servers=4"};
  const Result on_gpus = result_of("servers-ring-beats-server", gpus);
  CHECK(servers_of(on_gpus).link_bound.value() == Approx(4.0 * 3.0 / 4.0 * vgg_bytes / 6e9));
  CHECK(on_gpus.time() > servers_of(on_gpus).link_bound);
  CHECK(result_of("servers-ring-beats-server", {gpus[0], gpus[1], "plan.sync.consistency=bounded(1)"})
            .train()
            ->parameter_server->staleness->max <= 7 * 3);
}

TEST_CASE("R11: a server's CPU can be the limit") {
  // DGX-1, two servers, one a socket: each socket's memory (68.3 GB/s) takes four times what eight GPUs push to it and
  // gives what they pull, 5 · 8 · 277 MB: 162 ms. The four PCIe switches bring it twice as fast.
  const Result result = result_of("servers-ring-beats-server");
  CHECK(servers_of(result).server_bound.value() == Approx(5.0 * 8.0 * vgg_bytes / 2.0 / 68.25e9).epsilon(0.02));
  CHECK(servers_of(result).server_bound > servers_of(result).link_bound);
}

TEST_CASE("Processes that receive one push after the other let workers take turns") {
  // Two workers with next to nothing to compute push gradients for m and pull weights for m. Received together, both
  // push for 2 m and then both pull for 2 m, forever in step: 4 m. One after the other, one pushes while the other
  // pulls: 2 m.
  const auto step = [](bool one_at_a_time) {
    const Scenario scenario =
        load_scenario("servers-hosts", {"workload.train.model=mlp-d2l", "workload.train.micro_batch=1",
                                        "plan.sync.consistency=asynchronous", "plan.sync.barrier=false",
                                        "cluster.network.nic_bandwidth=100 Mbit/s"});
    const test::BuiltStep built(scenario);
    ParameterStore store = build_store(scenario, built.train(), built.model, built.topology, built.step);
    CHECK(store.one_push_at_a_time);
    store.one_push_at_a_time = one_at_a_time;
    const ServerGraph graph = build_server_graph(store, built.topology);
    const Execution execution = simulate(graph.graph, built.topology, Fidelity::flows);
    return times_of(store, graph, execution).step.value();
  };
  // 164,482 numbers at 100 Mbit/s, with headers.
  const double message = 1514.0 / 1448.0 * 4.0 * 164'482 / 12.5e6;
  CHECK(step(false) > 3.3 * message);  // keys of several layers part them a little
  CHECK(step(true) == Approx(2.0 * message).epsilon(0.05));
}

TEST_CASE("R11: 256 workers of which one is slow are simulated, and quickly") {
  const Result result = result_of("servers-slow-worker", {"cluster.nodes=260"});
  // Four cards receive what 256 workers push: nothing is shorter, and little is lost beside it.
  CHECK(result.time() >= 0.98 * servers_of(result).link_bound);
  CHECK(result.time() < 1.1 * servers_of(result).link_bound);
  CHECK(servers_of(result).staleness->mean > 200.0);
  const Scenario scenario = load_scenario("servers-slow-worker", {"cluster.nodes=260"});
  const test::BuiltStep built(scenario);
  const ParameterStore store = build_store(built.scenario, built.train(), built.model, built.topology, built.step);
  // 60,000 tasks but for the host's calls, which a worker's pushes and pulls each have beside the message.
  CHECK(build_server_graph(store, built.topology).graph.tasks().size() < 90'000);
}
