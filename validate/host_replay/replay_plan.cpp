#include "validate/host_replay/replay_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/base/format.hpp"
#include "model/base/number.hpp"
#include "model/collectives/algorithm.hpp"
#include "model/collectives/placement.hpp"
#include "model/hardware/topology.hpp"
#include "model/scenario/load/checks.hpp"
#include "validate/host_replay/step_plan.hpp"

namespace foretrain {

namespace {

/// No host may be faster than this: two processor cores must carry all of them.
constexpr BytesPerSecond fastest_host{1.25e9};
constexpr double largest_message = 1e9;
constexpr double longest_repetition = 60.0;  // seconds

[[noreturn]] void refuse(const Scenario& scenario, const std::string& key, const std::string& got,
                         const std::string& expected) {
  throw ScenarioError(position_of(scenario, key), key, got, expected);
}

/// A training step, or an all-reduce as a step that is nothing else.
StepPlan step_of(const Scenario& scenario) {
  if (std::holds_alternative<TrainWorkload>(scenario.workload)) {
    StepPlan step = plan_step(scenario);
    if (number(step.elements) * 4.0 <= largest_message) return step;
    refuse(scenario, "workload.train.model", fmt::format("gradients of {:.0f} B", number(step.elements) * 4.0),
           "at most 1 GB of them");
  }
  const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload);
  if (collective == nullptr || collective->operation != CollectiveOperation::all_reduce) {
    refuse(scenario, "workload", "this kind of work is not run on hosts",
           "workload.train, or workload.collective: { operation: all_reduce, … }");
  }
  const double size = collective->size.value();
  if (size < 4.0 || size > largest_message || std::fmod(size, 4.0) != 0.0) {
    refuse(scenario, "workload.collective.size", fmt::format("{:.0f} B", size),
           "a whole number of fp32 values, from 4 B to 1 GB");
  }
  return {collective->ranks, static_cast<std::int64_t>(size / 4.0), {}};
}

void check_cluster(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  if (!cluster.groups.empty()) refuse(scenario, "cluster.groups", "several kinds of hosts", "cluster.node: host-veth");
  if (cluster.gpus_per_node != 1) {
    refuse(scenario, "cluster.gpus_per_node", fmt::format("{} ranks on a host", cluster.gpus_per_node),
           "one rank per host: cluster: { node: host-veth, … }");
  }
  if (cluster.nodes < 2 || cluster.nodes > most_hosts) {
    refuse(scenario, "cluster.nodes", fmt::format("{} hosts", cluster.nodes), fmt::format("2 to {} hosts", most_hosts));
  }
  if (cluster.network.nics_per_node != 1 || cluster.network.nic_bandwidth > fastest_host) {
    refuse(
        scenario, "cluster.network",
        fmt::format("{} cards of {}", cluster.network.nics_per_node, format_bandwidth(cluster.network.nic_bandwidth)),
        "one card of at most 10 Gbit/s per host");
  }
  if (cluster.network.oversubscription != 1.0) {
    refuse(scenario, "cluster.network.oversubscription", "hosts share one switch that does not block", "1");
  }
}

/// The participants' hosts: rank r runs on the r-th node, servers where the placement puts them.
std::vector<Participant> participants_of(const Scenario& scenario, const CollectiveCall& call) {
  const Topology topology(scenario.cluster);
  std::vector<EndpointId> endpoints = call.groups.front();
  if (has_servers(call.algorithm)) {
    try {
      const std::vector<EndpointId> servers = server_endpoints(call, call.groups.front(), topology);
      endpoints.insert(endpoints.end(), servers.begin(), servers.end());
    } catch (const ImpossiblePlan& error) {
      refuse(scenario, "plan.sync.placement", error.what(), "more nodes, or placement: colocated");
    }
  }
  std::vector<Participant> participants;
  for (const EndpointId endpoint : endpoints) {
    const int host = topology.node_of(endpoint);
    participants.push_back({host, host_address(host)});
  }
  return participants;
}

/// What each host's card lets through: the network's rate, less where a fault says so.
std::vector<HostRate> rates_of(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  const BytesPerSecond whole = cluster.network.nic_bandwidth;
  std::vector<HostRate> rates(at_index(cluster.nodes), HostRate{whole, whole});
  for (const Fault& fault : cluster.faults) {
    if (fault.gpu >= 0 && std::holds_alternative<TrainWorkload>(scenario.workload)) continue;  // it computes slower
    const bool out = fault.concerns("nic0>fabric"), in = fault.concerns("fabric>nic0");
    if (fault.failed || fault.node < 0 || !(out || in)) {
      refuse(scenario, "cluster.faults", "hosts have nothing but their cards, which all work",
             "{ node: NUMBER, card: 0, bandwidth: … }");
    }
    HostRate& rate = rates[at_index(fault.node)];
    if (out) rate.out = fault.left_of(rate.out);
    if (in) rate.in = fault.left_of(rate.in);
  }
  return rates;
}

/// One rank per node: a hierarchical schedule's inner groups have one member.
ScheduleShape shape_of(const Scenario& scenario) {
  const bool servers = scenario.plan.sync.algorithm == SyncAlgorithm::parameter_server;
  return {servers ? scenario.plan.sync.servers : 1};
}

/// Rates are payload, as on the scenario's links; the wire carries more.
std::vector<BackgroundTraffic> background_of(const Scenario& scenario) {
  const Topology topology(scenario.cluster);
  const auto host_of = [&](const BackgroundFlow::Place& place) {
    return place.kind == BackgroundFlow::Place::Kind::node_memory ? place.number : topology.node_of(place.number);
  };
  std::vector<BackgroundTraffic> traffic;
  for (const BackgroundFlow& flow : scenario.background) {
    const bool fair_share = !is_finite(flow.rate);
    traffic.push_back({host_of(flow.from), host_of(flow.to),
                       fair_share ? BytesPerSecond(0) : flow.rate / scenario.cluster.network.efficiency});
  }
  return traffic;
}

int repetitions_for(const ReplayOptions& options) {
  if (options.repetitions > 0) return options.repetitions;
  const double seconds = std::max(options.predicted.value(), 1e-4);
  return static_cast<int>(std::clamp(std::ceil(1.5 / seconds), 3.0, 15.0));
}

}  // namespace

ReplayPlan plan_replay(const Scenario& scenario, const ReplayOptions& options) {
  check_cluster(scenario);
  StepPlan step = step_of(scenario);
  const Sync& sync = scenario.plan.sync;
  const bool trains = !step.tasks.empty();
  const std::string algorithm_key = trains ? "plan.sync.algorithm" : "workload.collective.algorithm";
  const Algorithm::Build build = algorithm_of(sync.algorithm).build(CollectiveOperation::all_reduce);
  if (build == nullptr) {
    refuse(scenario, algorithm_key, "`auto` leaves it to the library",
           "the algorithm to run: ring, tree, parameter_server, …");
  }
  if (options.predicted.value() > longest_repetition) {
    refuse(scenario, trains ? "workload.train" : "workload.collective.size",
           fmt::format("one {} takes {}", trains ? "step" : "all-reduce", format_seconds(options.predicted)),
           "less data or faster cards: at most a minute");
  }
  CollectiveCall call;
  call.operation = CollectiveOperation::all_reduce;
  call.algorithm = sync.algorithm;
  call.size = Bytes(number(step.elements) * 4.0);
  call.servers = sync.servers;
  call.placement = sync.placement;
  std::vector<int> ranks(at_index(step.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  call.groups = {ranks};

  const std::string algorithm(name(sync.algorithm));
  ReplayPlan plan;
  plan.hosts = rates_of(scenario);
  WorkerTask& task = plan.task;
  task.executor = options.executor;
  task.algorithm = algorithm;
  task.participants = participants_of(scenario, call);
  task.ranks = step.ranks;
  task.elements = step.elements;
  task.steps = std::move(step.tasks);
  if (options.executor == HostExecutor::own) {
    const Schedule schedule = build(task.ranks, shape_of(scenario));
    if (schedule.servers != task.servers() || !schedule.switch_ports.empty()) {
      refuse(scenario, algorithm_key, algorithm + " needs more than hosts",
             "an algorithm of ranks and servers: ring, tree, parameter_server, …");
    }
    task.chunks = schedule.chunks;
    for (int phase = 0; phase < schedule.phases; ++phase) task.phases.push_back(without_strides(schedule.phase(phase)));
  } else if (options.executor == HostExecutor::server) {
    if (sync.algorithm != SyncAlgorithm::parameter_server) {
      refuse(scenario, algorithm_key, "the key-value servers run no " + algorithm, "parameter_server");
    }
    task.keys = options.keys > 0 ? options.keys : task.servers();
  } else if (trains) {
    refuse(scenario, "workload.train", fmt::format("{} runs all-reduces alone", name(options.executor)),
           "--executor own or server");
  }
  plan.background = background_of(scenario);
  task.repetitions = repetitions_for(options);
  const double predicted = options.predicted.value();
  task.timeout = 20.0 + 5.0 * predicted * (task.repetitions + task.warmup);
  return plan;
}

}  // namespace foretrain
