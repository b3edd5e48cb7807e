#include "validate/host_replay/replay_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/base/format.hpp"
#include "model/base/number.hpp"
#include "model/collectives/algorithm.hpp"
#include "model/collectives/placement.hpp"
#include "model/hardware/topology.hpp"
#include "model/scenario/load/checks.hpp"

namespace foretrain {

namespace {

/// No host may be faster than this: two processor cores must carry all of them.
constexpr BytesPerSecond fastest_host{1.25e9};
constexpr double largest_message = 1e9;
constexpr int most_hosts = 16;
constexpr double longest_repetition = 60.0;  // seconds

/// A training step, or a collective as a step that is nothing else. All-reduces by a schedule that the user names or by
/// servers are no tasks but sums.
ReplayPlan step_of(const Scenario& scenario) {
  if (std::holds_alternative<TrainWorkload>(scenario.workload)) return plan_step(scenario);
  const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload);
  if (collective == nullptr) {
    refuse_replay(scenario, "workload", "this kind of work is not run on hosts",
                  "workload.train or workload.collective");
  }
  const bool sums = collective->operation == CollectiveOperation::all_reduce;
  const double size = collective->size.value();
  if (size < 4.0 || size > largest_message || std::fmod(size, 4.0) != 0.0) {
    refuse_replay(scenario, "workload.collective.size", fmt::format("{:.0f} B", size),
                  "a whole number of fp32 values, from 4 B to 1 GB");
  }
  if (!sums) return plan_collective(scenario);
  ReplayPlan plan;
  plan.task.ranks = collective->ranks;
  plan.task.elements = static_cast<std::int64_t>(size / 4.0);
  plan.sent = collective->size;
  return plan;
}

/// A fabric of leaves has one cable upward from each.
Uplinks uplinks_of(const Scenario& scenario) {
  const Network& network = scenario.cluster.network;
  if (std::holds_alternative<SingleSwitch>(network.fabric.shape)) return {};
  const auto* tree = std::get_if<FatTree>(&network.fabric.shape);
  if (tree == nullptr || tree->nodes_per_pod > 0 || tree->rails || tree->uplinks_of(scenario.cluster) != 1) {
    refuse_replay(scenario, "cluster.network.fabric", "hosts share one switch, or leaves below one spine",
                  "kind: single_switch, or a fat_tree without pods whose leaves have one cable upward each");
  }
  return {tree->nodes_per_leaf, network.nic_bandwidth * (number(tree->nodes_per_leaf) / tree->oversubscription)};
}

void check_cluster(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  if (!cluster.groups.empty())
    refuse_replay(scenario, "cluster.groups", "several kinds of hosts", "cluster.node: host-veth");
  if (cluster.gpus_per_node != 1) {
    refuse_replay(scenario, "cluster.gpus_per_node", fmt::format("{} ranks on a host", cluster.gpus_per_node),
                  "one rank per host: cluster: { node: host-veth, … }");
  }
  if (cluster.nodes < 2 || cluster.nodes > most_hosts) {
    refuse_replay(scenario, "cluster.nodes", fmt::format("{} hosts", cluster.nodes),
                  fmt::format("2 to {} hosts", most_hosts));
  }
  if (cluster.network.nics_per_node != 1 || cluster.network.nic_bandwidth > fastest_host) {
    refuse_replay(
        scenario, "cluster.network",
        fmt::format("{} cards of {}", cluster.network.nics_per_node, format_bandwidth(cluster.network.nic_bandwidth)),
        "one card of at most 10 Gbit/s per host");
  }
  if (cluster.network.oversubscription != 1.0) {
    refuse_replay(scenario, "cluster.network.oversubscription", "no host has a link of its own behind its card",
                  "1, and cluster.network.fabric: { kind: fat_tree, oversubscription: … }");
  }
}

/// Hosts of the participants: rank r on the r-th node, servers where the placement puts them.
std::vector<int> hosts_of(const Scenario& scenario, int ranks) {
  CollectiveCall call;
  call.algorithm = scenario.plan.sync.algorithm;
  call.servers = scenario.plan.sync.servers;
  call.placement = scenario.plan.sync.placement;
  const Topology topology(scenario.cluster);
  std::vector<EndpointId> endpoints(at_index(ranks));
  std::iota(endpoints.begin(), endpoints.end(), 0);
  call.groups = {endpoints};
  if (has_servers(call.algorithm)) {
    try {
      const std::vector<EndpointId> servers = server_endpoints(call, endpoints, topology);
      endpoints.insert(endpoints.end(), servers.begin(), servers.end());
    } catch (const ImpossiblePlan& error) {
      refuse_replay(scenario, "plan.sync.placement", error.what(), "more nodes, or placement: colocated");
    }
  }
  std::vector<int> hosts;
  for (const EndpointId endpoint : endpoints) hosts.push_back(topology.node_of(endpoint));
  return hosts;
}

/// Rate limit of each host's NIC: the network's rate, less where a fault says so.
std::vector<HostRate> rates_of(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  const BytesPerSecond whole = cluster.network.nic_bandwidth;
  std::vector<HostRate> rates(at_index(cluster.nodes), HostRate{whole, whole});
  for (const Fault& fault : cluster.faults) {
    if (fault.gpu >= 0 && std::holds_alternative<TrainWorkload>(scenario.workload)) continue;  // it computes slower
    const bool out = fault.concerns("nic0>fabric"), in = fault.concerns("fabric>nic0");
    if (fault.failed || fault.node < 0 || !(out || in)) {
      refuse_replay(scenario, "cluster.faults", "hosts have nothing but their cards, which all work",
                    "{ node: NUMBER, card: 0, bandwidth: … }");
    }
    HostRate& rate = rates[at_index(fault.node)];
    if (out) rate.out = fault.left_of(rate.out);
    if (in) rate.in = fault.left_of(rate.in);
  }
  return rates;
}

std::vector<BackgroundTraffic> background_of(const Scenario& scenario) {
  const Topology topology(scenario.cluster);
  const auto host_of = [&](const BackgroundFlow::Place& place) {
    return place.kind == BackgroundFlow::Place::Kind::node_memory ? place.number : topology.node_of(place.number);
  };
  std::vector<BackgroundTraffic> traffic;
  for (const BackgroundFlow& flow : scenario.background) {
    traffic.push_back({host_of(flow.from), host_of(flow.to), is_finite(flow.rate) ? flow.rate : BytesPerSecond(0)});
  }
  return traffic;
}

/// A schedule's transfers as messages of values.
Exchange exchange_of(const Schedule& schedule, std::int64_t elements) {
  Exchange exchange;
  for (int phase = 0; phase < schedule.phases; ++phase) {
    std::vector<Exchange::Message>& messages = exchange.phases.emplace_back().messages;
    for (const Transfer& t : without_strides(schedule.phase(phase))) {
      const ValueRange values = values_of(elements, schedule.chunks, t.first_chunk, t.chunks);
      if (values.count == 0) continue;
      messages.push_back({t.source, t.destination, values.count * static_cast<std::int64_t>(sizeof(float)), values,
                          t.kind == Transfer::Kind::reduce});
    }
  }
  return exchange;
}

/// The schedule that the task's processes carry out.
void add_sums(const Scenario& scenario, WorkerTask& task) {
  const Sync& sync = scenario.plan.sync;
  const bool trains = std::holds_alternative<TrainWorkload>(scenario.workload);
  const std::string key = trains ? "plan.sync.algorithm" : "workload.collective.algorithm";
  const std::string algorithm(name(sync.algorithm));
  const Algorithm& own = algorithm_of(sync.algorithm);
  if (own.build == nullptr) {
    refuse_replay(scenario, key, "`" + algorithm + "` leaves it to the library",
                  "the algorithm to run: ring, tree, parameter_server, …");
  }
  task.hosts = hosts_of(scenario, task.ranks);
  // One rank per node: a hierarchical schedule's inner groups have one member.
  const ScheduleShape shape{sync.algorithm == SyncAlgorithm::parameter_server ? sync.servers : 1};
  const Schedule schedule = own.schedule(CollectiveOperation::all_reduce, task.ranks, shape);
  if (schedule.servers != task.servers()) {
    refuse_replay(scenario, key, algorithm + " needs more than hosts",
                  "an algorithm of ranks and servers: ring, tree, parameter_server, …");
  }
  task.exchanges = {exchange_of(schedule, task.elements)};
  // Steps with servers have their tasks already; servers, and ranks of a collective, have that one exchange.
  task.steps.resize(task.hosts.size(), {StepTask{0, 0.0, 0, {}}});
}

}  // namespace

ReplayPlan plan_replay(const Scenario& scenario, const ReplayOptions& options) {
  check_cluster(scenario);
  const bool trains = std::holds_alternative<TrainWorkload>(scenario.workload);
  ReplayPlan plan = step_of(scenario);
  if (plan.sent.value() > largest_message) {
    refuse_replay(scenario, trains ? "workload.train.model" : "workload.collective.size",
                  fmt::format("{} sent by a rank", format_bytes(plan.sent)), "at most 1 GB");
  }
  if (options.predicted.value() > longest_repetition) {
    refuse_replay(scenario, trains ? "workload.train" : "workload.collective.size",
                  fmt::format("one {} takes {}", trains ? "step" : "collective", format_seconds(options.predicted)),
                  "less data or faster cards: at most a minute");
  }
  plan.hosts = rates_of(scenario);
  plan.uplinks = uplinks_of(scenario);
  WorkerTask& task = plan.task;
  if (task.elements > 0) {
    add_sums(scenario, task);
  } else {
    task.hosts.resize(at_index(task.ranks));
    std::iota(task.hosts.begin(), task.hosts.end(), 0);
  }
  plan.background = background_of(scenario);
  const double in_time = std::ceil(1.5 / std::max(options.predicted.value(), 1e-4));
  task.repetitions = options.repetitions > 0 ? options.repetitions : static_cast<int>(std::clamp(in_time, 3.0, 15.0));
  task.timeout = 20.0 + 5.0 * options.predicted.value() * (task.repetitions + task.warmup);
  return plan;
}

}  // namespace foretrain
