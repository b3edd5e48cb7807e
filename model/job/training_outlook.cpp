#include "model/job/training_outlook.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/base/number.hpp"
#include "model/parallelism/layout.hpp"

namespace foretrain {

namespace {

constexpr int trainings = 1000;
constexpr Seconds usual_length(30.0 * 86400.0);
constexpr int cards_of_switch = 32;  ///< half of 64 ports lead to machines

const TrainWorkload& train_of(const Scenario& scenario) { return std::get<TrainWorkload>(scenario.workload); }

/// Parts of each kind on these machines.
std::array<double, failing_parts> parts_on(const std::vector<int>& nodes, const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  double gpus = 0.0, cards = 0.0;
  for (const int node : nodes) {
    gpus += cluster.gpus_on(node);
    if (cluster.nodes > 1) cards += cluster.network_at(node).nics_per_node;
  }
  const double machines = number(static_cast<std::int64_t>(nodes.size()));
  const double switches = cluster.failures->switches ? *cluster.failures->switches : std::ceil(cards / cards_of_switch);
  return {gpus, machines, cards, cards, switches, machines};
}

/// One for each kind of part that can fail; `fill` says what it does.
template <typename Fill>
void add_interruptions(const std::vector<int>& nodes, const Scenario& scenario, std::vector<Interruption>& all,
                       Fill fill) {
  const Failures& failures = *scenario.cluster.failures;
  const auto count = parts_on(nodes, scenario);
  for (std::size_t i = 0; i < failing_parts; ++i) {
    if (!is_finite(failures.mtbf[i]) || !(count[i] > 0.0)) continue;
    const auto part = static_cast<FailingPart>(i);
    Interruption interruption;
    interruption.what = name(part);
    interruption.mtbf = failures.mtbf[i] / count[i];
    interruption.takes_machine = takes_machine(part);
    fill(part, interruption);
    all.push_back(std::move(interruption));
  }
}

Lifetime common_lifetime(const Scenario& scenario, const TrainResult& train) {
  const TrainWorkload& workload = train_of(scenario);
  const Recovery& recovery = *workload.recovery;
  Lifetime life;
  life.step = train.step_time;
  life.steps =
      workload.training_samples ? *workload.training_samples / number(workload.global_batch) : usual_length / life.step;
  life.heartbeat = recovery.heartbeat;
  life.missed = recovery.missed;
  life.spares = recovery.spares;
  life.repair = recovery.repair;
  return life;
}

/// A slow GPU stretches what kernels take until it is noticed; then the state is saved and its machine replaced.
void add_stragglers(const Scenario& scenario, const TrainResult& train, Seconds restart, Lifetime& life) {
  const auto& stragglers = scenario.cluster.failures->stragglers;
  if (!stragglers) return;
  const double kernels = (train.breakdown.compute + train.breakdown.optimizer) / train.step_time;
  const double longer = 1.0 + kernels * (1.0 / stragglers->speed - 1.0);
  Interruption slow;
  slow.what = "straggler";
  slow.mtbf = stragglers->mtbf / number(plan_gpus(scenario.plan, scenario.cluster));
  slow.takes_machine = true;
  slow.detected = false;
  slow.before = stragglers->noticed * (1.0 - 1.0 / longer);
  slow.restart = restart;
  slow.loses = 0.0;
  life.interruptions.push_back(std::move(slow));
}

}  // namespace

Lifetime lifetime_of(const Scenario& scenario, const TrainResult& train, const CheckpointCost& cost,
                     const CheckpointedStep& checkpointed) {
  const Checkpoint& checkpoint = *train_of(scenario).checkpoint;
  const Recovery& recovery = *train_of(scenario).recovery;
  Lifetime life = common_lifetime(scenario, train);
  life.every = checkpoint.every;
  life.blocked = std::max(checkpointed.step - train.step_time, Seconds(0.0));
  if (checkpoint.mode != Checkpoint::Mode::synchronous) {
    life.unsafe = cost.copy_time + cost.write;
    life.least_interval = cost.write;
  }
  const Seconds processes = recovery.start + recovery.initialise;
  const Seconds state = cost.read + cost.spread;
  const std::vector<int> nodes = nodes_of(scenario.plan, scenario.cluster);
  add_interruptions(nodes, scenario, life.interruptions, [&](FailingPart part, Interruption& failure) {
    failure.restart = processes + state;
    if (failure.takes_machine) failure.restart += cost.fetch;
    // With any number of spare machines, those behind another switch take over.
    if (part == FailingPart::fabric_switch && recovery.spares) failure.restart += recovery.repair;
  });
  add_stragglers(scenario, train, cost.copy_time + cost.write + processes + state + cost.fetch, life);
  return life;
}

Lifetime lifetime_of(const Scenario& scenario, const TrainResult& train, const ParameterStore& store,
                     const ParameterStore::Bounds& bounds, Bytes state) {
  const TrainWorkload& workload = train_of(scenario);
  const Recovery& recovery = *workload.recovery;
  const bool replicated = recovery.servers == Recovery::Servers::replicated;
  const bool waits = scenario.plan.sync.waits_for_slowest();
  const double workers = store.worker_count(), servers = store.server_count();
  const Seconds copy_of_weights = bounds.pull / workers;
  Lifetime life = common_lifetime(scenario, train);
  Seconds read;
  if (replicated) {
    life.every = 1;
    if (waits) life.blocked = copy_of_weights;
  } else {
    const Checkpoint& checkpoint = *workload.checkpoint;
    const Bytes fullest = state * (store.imbalance / servers);
    const auto time = [&](bool write) {
      return storage_time(checkpoint.storage, fullest, store.server_count(), 1, write);
    };
    read = time(false);
    life.every = checkpoint.every;
    if (checkpoint.mode == Checkpoint::Mode::synchronous) {
      life.blocked = time(true);
    } else {
      life.unsafe = life.least_interval = time(true);
    }
  }
  std::vector<int> of_servers = nodes_of(scenario.plan, scenario.cluster);
  const std::size_t most = std::min(of_servers.size(), static_cast<std::size_t>(store.server_count()));
  const std::vector<int> of_workers(of_servers.begin(), of_servers.end() - static_cast<std::ptrdiff_t>(most));
  of_servers.erase(of_servers.begin(), of_servers.end() - static_cast<std::ptrdiff_t>(most));
  add_interruptions(of_workers, scenario, life.interruptions, [&](FailingPart, Interruption& failure) {
    failure.what = "worker: " + failure.what;
    failure.restart = recovery.start + recovery.initialise + copy_of_weights;
    failure.stops = waits ? 1.0 : 1.0 / workers;
    failure.loses = 0.0;
  });
  add_interruptions(of_servers, scenario, life.interruptions, [&](FailingPart, Interruption& failure) {
    failure.what = "server: " + failure.what;
    failure.takes_machine = failure.takes_machine && !replicated;
    failure.restart = recovery.initialise + (replicated ? Seconds(0.0) : recovery.start + read);
    failure.loses = replicated ? 0.0 : waits ? 1.0 : 1.0 / servers;
  });
  return life;
}

IntervalSearch search_interval(const Scenario& scenario, const Lifetime& life) {
  return search_interval(life, trainings, scenario.cluster.failures->seed);
}

void add_goodput(const Scenario& scenario, const Lifetime& life, std::optional<IntervalSearch> intervals,
                 Result& result) {
  const TrainWorkload& workload = train_of(scenario);
  const int seed = scenario.cluster.failures->seed;
  TrainResult& train = *result.train();
  TrainResult::Goodput& goodput = train.goodput.emplace(TrainResult::Goodput());
  goodput.mtbf = life.mtbf();
  goodput.recovery = life.mean_recovery();
  goodput.blocked = life.blocked;
  goodput.unsafe = life.unsafe;
  goodput.every = workload.checkpoint ? life.every : 0;
  for (const Interruption& interruption : life.interruptions) goodput.kinds.push_back(interruption.what);
  goodput.simulated = simulate_lifetime(life, trainings, seed);
  if (workload.checkpoint) {
    goodput.intervals = std::move(*intervals);
    const Seconds worked = life.every * life.step;
    if (goodput.intervals->daly) {
      goodput.by_daly = daly_goodput(worked, life.cycle() - worked, goodput.recovery, goodput.mtbf);
    }
  }
  if (!goodput.simulated.ends) {
    result.warnings.emplace_back(
        "failures come so fast that the training hardly gets on: its length is that of its first part, extrapolated");
  }
  if (!train.time_to_train) return;
  const double longer = goodput.simulated.mean / *train.time_to_train;
  *train.time_to_train *= longer;
  if (train.cost_usd) *train.cost_usd *= longer;
}

void set_length_interval(Result& result) {
  TrainResult& train = *result.train();
  // Both are spreads about a middle on a logarithmic scale, and independent.
  double shorter = std::log(train.step_time / result.uncertainty_low);
  double longer = std::log(result.uncertainty_high / train.step_time);
  if (train.goodput) {
    const LifetimeResult& lengths = train.goodput->simulated;
    shorter = std::hypot(shorter, std::log(lengths.mean / lengths.p5));
    longer = std::hypot(longer, std::log(std::max(lengths.p95 / lengths.mean, 1.0)));
  }
  const double low = std::exp(-shorter), high = std::exp(longer);
  TrainResult::Bill& bill = train.bill ? *train.bill : train.bill.emplace();
  bill.shortest = *train.time_to_train * low;
  bill.longest = *train.time_to_train * high;
  if (train.cost_usd) bill.usd_low = *train.cost_usd * low, bill.usd_high = *train.cost_usd * high;
}

void add_bill(const Scenario& scenario, Result& result) {
  const Cluster& cluster = scenario.cluster;
  TrainResult& train = *result.train();
  if (!train.time_to_train) return;
  set_length_interval(result);
  if (!cluster.energy) return;
  TrainResult::Bill& bill = *train.bill;
  const double useful = train.goodput ? train.goodput->simulated.shares.useful : 1.0;
  const double busy = useful * ((train.breakdown.compute + train.breakdown.optimizer) / train.step_time);
  const double drawn = scenario.calibration.power.static_share;
  double boards = 0.0;
  for (const int node : nodes_of(scenario.plan, cluster)) {
    boards += cluster.gpus_on(node) * cluster.node_at(node).gpu.board_power_watts;
  }
  constexpr double joules_per_kwh = 3.6e6;
  bill.watts = cluster.energy->pue * (boards * (drawn + (1.0 - drawn) * busy) + cluster.energy->rest_watts);
  bill.kwh = *bill.watts * train.time_to_train->value() / joules_per_kwh;
  if (cluster.energy->grams_per_kwh) bill.kg_co2 = *bill.kwh * *cluster.energy->grams_per_kwh * 1e-3;
}

}  // namespace foretrain
