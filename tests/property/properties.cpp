#include "tests/property/properties.hpp"

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/job/job.hpp"
#include "model/memory/stage_memory.hpp"
#include "model/parallelism/layout.hpp"
#include "model/workload/build.hpp"
#include "sim/simulate.hpp"
#include "tests/property/times.hpp"

namespace foretrain::test {

namespace {

/// Groups that send over one link at the same time take turns once anything sets them apart, and wait less for each
/// other: whatever does is a gain (model-assumptions.md).
constexpr double out_of_step = 0.1;
/// Of bounded workers, which come to take turns at the servers, or to be let go together by the slowest.
constexpr double regimes = 0.2;
/// Of the background: a flow of it that the job slows down on one link leaves more to the job on another.
constexpr double elsewhere = 0.05;
/// Groups that begin some microseconds apart meet others in the next layer than those that begin together.
constexpr double nearly_together = 0.02;
/// Without contention only the order of sums differs.
constexpr double alone = 1e-4;

/// Which algorithms carry out what. The library chooses by its own model of the hardware, which knows of no traffic but
/// the call's: another choice may be the slower one.
std::set<std::pair<std::string, std::string>> choices_of(const Scenario& scenario) {
  std::set<std::pair<std::string, std::string>> choices;
  const std::unique_ptr<Job> job = make_job(scenario, Fidelity::flows);
  for (const Block& block : job->graph().blocks()) {
    if (block.flows) choices.emplace(block.name, block.flows->chosen_algorithm);
  }
  return choices;
}

bool flows_are_apart(const LoweredCollective::Phase& phase, const Topology& topology) {
  std::map<LinkId, std::pair<EndpointId, EndpointId>> user_of_link;
  return std::ranges::all_of(phase.flows, [&](const Flow& flow) {
    const std::pair ends(flow.source, flow.destination);
    return std::ranges::all_of(topology.route(flow.source, flow.destination).links,
                               [&](LinkId link) { return user_of_link.try_emplace(link, ends).first->second == ends; });
  });
}

bool flows_are_apart(const Scenario& scenario) {
  const std::unique_ptr<Job> job = make_job(scenario, Fidelity::flows);
  if (job->topology().draws_routes()) return false;
  return std::ranges::all_of(job->graph().blocks(), [&](const Block& block) {
    const auto apart = [&](const LoweredCollective::Phase& phase) { return flows_are_apart(phase, job->topology()); };
    return !block.flows || std::ranges::all_of(block.flows->phases, apart);
  });
}

/// Whether no link is used by two transfers while both last, latencies included: under `flows` one may move while the
/// other waits, whereas their steps do both in turns.
bool transfers_are_apart(const Scenario& scenario) {
  const std::unique_ptr<Job> job = make_job(scenario, Fidelity::flows);
  const Execution execution = run(job->graph());
  std::map<LinkId, std::vector<std::pair<Seconds, Seconds>>> uses;
  for (std::size_t task = 0; task < job->graph().tasks().size(); ++task) {
    std::set<LinkId> links;
    const Block& block = job->graph().block_of(static_cast<TaskId>(task));
    if (!block.flows) continue;
    for (const LoweredCollective::Phase& phase : block.flows->phases) {
      for (const Flow& flow : phase.flows) {
        const std::vector<LinkId> route = job->topology().route(flow.source, flow.destination).links;
        links.insert(route.begin(), route.end());
      }
    }
    for (const LinkId link : links) uses[link].emplace_back(execution.start[task], execution.finish[task]);
  }
  for (auto& [link, times] : uses) {
    std::ranges::sort(times);
    for (std::size_t i = 1; i < times.size(); ++i) {
      if (is_above(times[i - 1].second, times[i].first)) return false;
    }
  }
  return true;
}

/// Whether traffic of the job meets other traffic of it, or of others.
bool meets(const Scenario& scenario) {
  return !scenario.background.empty() || !flows_are_apart(scenario) || !transfers_are_apart(scenario);
}

/// Workers that settle into one of several cycles for good, by little things: bounded ones, and asynchronous ones whose
/// messages overtake each other.
bool has_regimes(const Settings& settings) {
  const auto consistency = settings.find("plan.sync.consistency");
  if (consistency == settings.end()) return false;
  return consistency->second.starts_with("bounded") ||
         (consistency->second == "asynchronous" && settings.contains("plan.sync.priority"));
}

int node_of(const BackgroundFlow::Place& place, const Cluster& cluster) {
  using enum BackgroundFlow::Place::Kind;
  if (place.kind == outside) return -1;
  return place.kind == node_memory ? place.number : place.number / cluster.gpus_per_node;
}

/// Others' traffic between nodes at a rate that cards and a tree's core let through. What holds it back holds it back
/// no less once cards are faster, and then it would take more of the links inside a machine.
Scenario with_steady_others(Scenario scenario) {
  const Cluster& cluster = scenario.cluster;
  double slowest = 1.0;
  for (const Fault& fault : cluster.faults) slowest = std::min(slowest, fault.share);
  const auto others = static_cast<double>(std::max<std::size_t>(scenario.background.size(), 1));
  const double share = slowest / (2.0 * others * cluster.network.oversubscription);
  for (BackgroundFlow& flow : scenario.background) {
    if (node_of(flow.from, cluster) == node_of(flow.to, cluster)) continue;
    flow.rate = std::min(flow.rate, cluster.network.nic_bandwidth * share);
  }
  return scenario;
}

/// Kept for the next change of the same settings.
Seconds time_with_steady_others(const Settings& settings, const Scenario& steady, Fidelity fidelity) {
  static LastTimes times;
  return times.of(settings, fidelity,
                  [&] { return steady.background.empty() ? time_of(settings, fidelity) : time_of(steady, fidelity); });
}

/// Before and after a change that may be impossible. Where traffic meets, so much is allowed. Of simulated workers that
/// fall into one of several regimes (model-assumptions.md), estimates alone.
template <typename Change>
Violation not_slower(const Settings& settings, const char* what, const Change& change, double of_flows = out_of_step,
                     double of_estimate = out_of_step) {
  const Scenario before = with_steady_others(scenario_of(settings));
  Scenario after = before;
  if (!change(after)) return std::nullopt;
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    const double slack = fidelity == Fidelity::flows ? of_flows : of_estimate;
    if (has_regimes(settings) && fidelity == Fidelity::flows && slack < regimes) continue;
    const Seconds first = time_with_steady_others(settings, before, fidelity);
    const Seconds then = time_of(after, fidelity);
    if (is_above(then, first, alone) && (is_above(then, first, slack) || !(meets(before) || meets(after)))) {
      const bool other_channels = channels_of(before.cluster) != channels_of(after.cluster);
      if (other_channels || choices_of(before) != choices_of(after)) return std::nullopt;
      return compared(first, then, std::string(what) + (fidelity == Fidelity::flows ? ", flows" : ", estimate"));
    }
  }
  return std::nullopt;
}

template <typename Change>
Violation no_difference(const Settings& settings, const char* what, const Change& change, double slack = rounding) {
  Settings changed = settings;
  if (!change(changed)) return std::nullopt;
  const Scenario after = scenario_of(changed);
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    const Seconds first = time_of(settings, fidelity), then = time_of(after, fidelity);
    if (is_above(then, first, slack) || is_above(first, then, slack)) {
      return compared(first, then, std::string(what) + (fidelity == Fidelity::flows ? ", flows" : ", estimate"));
    }
  }
  return std::nullopt;
}

std::string placement_of(int nodes, bool backwards) {
  std::string list = "[";
  for (int i = 0; i < nodes; ++i) list += fmt::format("{}{}", i > 0 ? ", " : "", backwards ? nodes - 1 - i : i);
  return list + "]";
}

int nodes_of(const Settings& settings) {
  const auto nodes = settings.find("cluster.nodes");
  return nodes == settings.end() ? 1 : std::stoi(nodes->second);
}

/// Fabrics whose links do not depend on how many nodes there are, and on which of them work.
bool has_plain_fabric(const Settings& settings) { return !settings.contains("cluster.network.fabric"); }

/// Weights, gradients and states of each stage: what ZeRO divides.
std::vector<Bytes> states_of(const Scenario& scenario) {
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  const Model model = build_model(train.model, build_options(train, scenario.plan));
  const auto chunks = split_layers(model, scenario.plan);
  std::vector<Bytes> states;
  for (int stage = 0; stage < scenario.plan.pipeline; ++stage) {
    const MemoryParts fixed = StageMemory(scenario, train, model, chunks, stage).fixed();
    states.push_back(fixed[MemoryPart::weights] + fixed[MemoryPart::gradients] + fixed[MemoryPart::optimizer]);
  }
  return states;
}

bool drop_fault(Scenario& scenario) {
  if (scenario.cluster.faults.empty()) return false;
  scenario.cluster.faults.pop_back();
  return true;
}

constexpr double switches_add_up_since = 9.0;  // compute capability

}  // namespace

Violation estimate_is_below_flows(const Settings& settings) {
  const Seconds estimated = time_of(settings, Fidelity::estimate), simulated = time_of(settings, Fidelity::flows);
  const bool has_background =
      std::ranges::any_of(settings, [](const auto& setting) { return setting.first.starts_with("background"); });
  if (!is_above(estimated, simulated, has_background ? elsewhere : nearly_together)) return std::nullopt;
  return compared(simulated, estimated, "flows -> estimate");
}

/// If the simulation takes as long as the estimate and no two flows of a phase share a link, nothing has met: then
/// every step by itself takes as long, too. Flows of one collective that share a link fall out of step with each other,
/// so that one moves while the other waits for its latency, or both wait.
Violation steps_take_as_long_as_flows(const Settings& settings) {
  const Scenario scenario = scenario_of(settings);
  if (!scenario.background.empty() || !flows_are_apart(scenario)) return std::nullopt;
  const Seconds estimated = time_of(settings, Fidelity::estimate), simulated = time_of(settings, Fidelity::flows);
  if (differ(estimated, simulated)) return std::nullopt;
  const Seconds steps = time_of(settings, Fidelity::steps);
  if (!differ(steps, simulated) || !transfers_are_apart(scenario)) return std::nullopt;
  return compared(simulated, steps, "flows -> steps");
}

Violation more_bandwidth_is_not_slower(const Settings& settings) {
  const Violation cards = not_slower(settings, "cards twice as fast", [](Scenario& scenario) {
    multiply(scenario.cluster.network.nic_bandwidth, 2.0);
    return scenario.cluster.nodes > 1;
  });
  if (cards) return cards;
  const Violation fabric = not_slower(settings, "a fabric twice as wide", [](Scenario& scenario) {
    Network& network = scenario.cluster.network;
    const Network before = network;
    network.oversubscription = std::max(1.0, network.oversubscription / 2.0);
    widen_fabric(network.fabric);
    return scenario.cluster.nodes > 1 && network != before;
  });
  if (fabric) return fabric;
  return not_slower(settings, "links in machines twice as fast", [](Scenario& scenario) {
    for (LinkType& type : scenario.cluster.node.link_types) {
      if (type.kind != LinkKind::memory) multiply(type.bandwidth, 2.0);
    }
    return true;
  });
}

Violation fewer_faults_are_not_slower(const Settings& settings) {
  return not_slower(settings, "without the last fault", drop_fault);
}

Violation less_background_is_not_slower(const Settings& settings) {
  const Violation less = not_slower(settings, "background at half its rate", [](Scenario& scenario) {
    if (scenario.background.empty() || !is_finite(scenario.background.back().rate)) return false;
    multiply(scenario.background.back().rate, 0.5);
    return true;
  });
  if (less) return less;
  return not_slower(settings, "without the last background", [](Scenario& scenario) {
    if (scenario.background.empty()) return false;
    scenario.background.pop_back();
    return true;
  });
}

Violation slower_workers_are_not_faster(const Settings& settings) {
  const double slack = has_regimes(settings) ? regimes : out_of_step;
  const Violation slower = not_slower(
      settings, "slow workers half as slow",
      [](Scenario& scenario) {
        Sync::SlowWorkers& slow = scenario.plan.sync.slow_workers;
        slow.factor = 1.0 + (slow.factor - 1.0) / 2.0;
        return slow.count > 0;
      },
      slack, alone);
  if (slower) return slower;
  return not_slower(
      settings, "one slow worker less",
      [](Scenario& scenario) {
        Sync::SlowWorkers& slow = scenario.plan.sync.slow_workers;
        return slow.count-- > 0;
      },
      slack, alone);
}

Violation idle_nodes_change_nothing(const Settings& settings) {
  return no_difference(settings, "two idle nodes more", [](Settings& changed) {
    const int nodes = nodes_of(changed);
    if (nodes < 2 || !has_plain_fabric(changed) || !changed.contains("plan.data")) return false;
    changed["cluster.nodes"] = std::to_string(nodes + 2);
    changed["plan.placement"] = placement_of(nodes, false);
    return true;
  });
}

Violation renumbered_nodes_change_nothing(const Settings& settings) {
  return no_difference(settings, "nodes in reverse order", [](Settings& changed) {
    const int nodes = nodes_of(changed);
    if (nodes < 2 || !has_plain_fabric(changed) || !changed.contains("plan.data")) return false;
    if (changed.contains("background[0]") || changed.contains("background[1]")) return false;
    for (int i = 0; i < 2; ++i) {
      const auto fault = changed.find(fmt::format("cluster.faults[{}]", i));
      if (fault == changed.end()) continue;
      const std::size_t number = fault->second.find("node: ") + 6, end = fault->second.find(',', number);
      const int node = std::stoi(fault->second.substr(number, end - number));
      fault->second.replace(number, end - number, std::to_string(nodes - 1 - node));
    }
    changed["plan.placement"] = placement_of(nodes, true);
    return true;
  });
}

/// The same wires, however they are described.
Violation one_leaf_is_one_switch(const Settings& settings) {
  constexpr double other_order = 1e-3;
  return no_difference(
      settings, "one switch -> a tree of one leaf",
      [](Settings& changed) {
        const int nodes = nodes_of(changed);
        if (nodes < 2 || !has_plain_fabric(changed)) return false;
        if (changed.contains("cluster.network.oversubscription")) return false;
        changed["cluster.network.fabric"] = fmt::format("{{ kind: fat_tree, nodes_per_leaf: {} }}", nodes);
        return true;
      },
      other_order);
}

/// All-reduces alone: NCCL has no other trees, and gathers and scatters in the network's switches only where each GPU
/// has a card.
bool is_reduced_whole(const Settings& settings) {
  const auto operation = settings.find("workload.collective.operation"), zero = settings.find("plan.zero");
  return (operation == settings.end() || operation->second == "all_reduce") && !settings.contains("plan.zero.stage") &&
         (zero == settings.end() || zero->second == "0");
}

/// Of what NCCL tries, with nothing else on the links: of others' traffic it knows nothing. Whether NVLink's switches
/// add up it decides by what it expects of them, which may be a fifth off.
Violation automatic_is_not_slower_than_named(const Settings& settings) {
  Settings automatic = settings;
  std::erase_if(automatic, [](const auto& setting) { return setting.first.starts_with("background"); });
  automatic["plan.sync.algorithm"] = "auto";
  automatic.erase("workload.collective.algorithm");
  const Scenario scenario = scenario_of(automatic);
  const double expected = scenario.cluster.node.gpu.compute_capability >= switches_add_up_since ? 1.2 : 1.0;
  const Seconds time = time_of(scenario, Fidelity::estimate);
  for (const SyncAlgorithm algorithm :
       {SyncAlgorithm::ring, SyncAlgorithm::double_tree, SyncAlgorithm::in_network, SyncAlgorithm::multi_ring}) {
    const bool rings = algorithm == SyncAlgorithm::ring || algorithm == SyncAlgorithm::multi_ring;
    if (!rings && !is_reduced_whole(automatic)) continue;
    automatic["plan.sync.algorithm"] = std::string(name(algorithm));
    const Violation slower = check(
        [&](const Settings& named) -> Violation {
          const Seconds by_name = time_of(scenario_of(named), Fidelity::estimate);
          if (!is_above(time, by_name * expected)) return std::nullopt;
          return compared(by_name, time, fmt::format("{} -> auto", std::string(name(algorithm))));
        },
        automatic);
    if (slower) return slower;
  }
  return std::nullopt;
}

Violation parts_add_up(const Settings& settings) {
  const Scenario scenario = scenario_of(settings);
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    const TrainResult result = *predict(scenario, fidelity, Detail::numbers).train();
    const Breakdown& parts = result.breakdown;
    if (differ(parts.total(), result.step_time)) return compared(result.step_time, parts.total(), "step -> breakdown");
    for (const Seconds part : {parts.compute, parts.exposed_communication, parts.pipeline_bubble, parts.data_stall,
                               parts.host_overhead, parts.optimizer}) {
      if (part < Seconds(0.0)) return fmt::format("a part of the breakdown takes {} s", part.value());
    }
    Seconds exposed;
    for (const auto& [name, time] : result.communication) {
      exposed += time.exposed;
      if (is_above(time.exposed, time.total)) return compared(time.total, time.exposed, name + ": total -> exposed");
    }
    if (is_above(exposed, parts.exposed_communication)) {
      return compared(parts.exposed_communication, exposed, "exposed -> its parts");
    }
  }
  return std::nullopt;
}

Violation memory_follows_zero_and_batch(const Settings& settings) {
  const auto memory = [](const Settings& of) { return estimate(scenario_of(of)).train()->memory.total(); };
  const Bytes own = memory(settings);
  const auto batch = settings.find("workload.train.micro_batch");
  const auto global = settings.find("workload.train.global_batch");
  if (batch != settings.end() && global != settings.end()) {
    Settings changed = settings;
    changed["workload.train.global_batch"] = std::to_string(2 * std::stoi(global->second));
    changed["workload.train.micro_batch"] = std::to_string(2 * std::stoi(batch->second));
    const auto is_larger = [&](const Settings& other) -> Violation {
      const Bytes then = memory(other);
      if (then >= own) return std::nullopt;
      return fmt::format("twice the micro-batch: {:.0f} -> {:.0f} B", own.value(), then.value());
    };
    if (const Violation smaller = check(is_larger, changed)) return smaller;
  }
  const auto zero = settings.find("plan.zero");
  // Stages of pipelines keep whole gradients under ZeRO-3.
  if (zero != settings.end() && zero->second < (settings.contains("plan.pipeline") ? "2" : "3")) {
    Settings changed = settings;
    changed["plan.zero"] = std::to_string(std::stoi(zero->second) + 1);
    return check(
        [&](const Settings& other) -> Violation {
          // Buffers for gathers and scatters may outweigh states in the smallest models, and make another stage the
          // fullest.
          const std::vector<Bytes> before = states_of(scenario_of(settings)), after = states_of(scenario_of(other));
          for (std::size_t stage = 0; stage < before.size(); ++stage) {
            if (after[stage] <= before[stage]) continue;
            return fmt::format("one stage of ZeRO more: states {:.0f} -> {:.0f} B", before[stage].value(),
                               after[stage].value());
          }
          return std::nullopt;
        },
        changed);
  }
  return std::nullopt;
}

}  // namespace foretrain::test
