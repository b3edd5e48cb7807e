// Which workers are simulated as one, for how many iterations, and from their dates to speeds and staleness.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <ranges>

#include "model/base/number.hpp"
#include "model/parameter_server/server_graph.hpp"

namespace foretrain {

namespace {

constexpr int most_messages_each = 256;  ///< of lanes to servers at a time, up to which every worker has a lane
constexpr int most_messages = 96;
constexpr int fewest_lanes = 8;

/// Workers from `first` to before `end` in lanes of at most `size`, as even as they can be.
void add_lanes(int first, int end, int size, std::vector<WorkerLane>& lanes) {
  const int count = (end - first + size - 1) / size;
  for (int lane = 0; lane < count; ++lane) {
    const int begin = first + (end - first) * lane / count;
    WorkerLane& workers = lanes.emplace_back(at_index(first + (end - first) * (lane + 1) / count - begin));
    std::iota(workers.begin(), workers.end(), begin);
  }
}

/// ServerGraph::Iterations that a worker has done at a date, parts of one included.
double done_at(const std::vector<Seconds>& ends, Seconds date) {
  const auto next = std::ranges::upper_bound(ends, date);
  const auto whole = static_cast<double>(next - ends.begin());
  if (next == ends.end()) return whole;
  const Seconds before = next == ends.begin() ? Seconds(0.0) : *(next - 1);
  return whole + (date - before) / (*next - before);
}

/// The updates of a key group on a server: when, and how many until then.
using Updates = std::map<Seconds, int>;

/// Number of updates that were applied before a date, or at it.
int applied(const Updates& updates, Seconds date, bool before) {
  const auto next = before ? updates.lower_bound(date) : updates.upper_bound(date);
  return next == updates.begin() ? 0 : std::prev(next)->second;
}

std::optional<ParameterServerResult::Staleness> staleness_of(const ParameterStore& store, const ServerGraph& graph,
                                                             const Execution& execution, Seconds from, Seconds to) {
  if (store.consistency == Sync::Consistency::synchronous)
    return ParameterServerResult::Staleness{};  // all pull after all have pushed
  std::map<std::pair<int, int>, Updates> updates;
  for (const ServerGraph::Exchange& e : graph.exchanges) {
    updates[{e.group, e.server}][execution.finish[at_index(e.update)]] +=
        static_cast<int>(graph.lanes[at_index(e.lane)].size());
  }
  for (auto& [key, dates] : updates) {
    int sum = 0;
    for (auto& [date, until] : dates) until = sum += until;
  }
  std::map<int, double> workers;  // by how many updates of others
  double all = 0.0, sum = 0.0;
  for (const ServerGraph::Exchange& e : graph.exchanges) {
    const Seconds own = execution.finish[at_index(e.update)];
    if (e.pull < 0 || own < from || own > to) continue;
    // Updates applied until the server began to send are in the weights.
    const Updates& dates = updates.at({e.group, e.server});
    const int others = applied(dates, own, true) - applied(dates, execution.start[at_index(e.pull)], false);
    // Each of the lane's other workers applies one update between a worker's pull and its own.
    const auto lane = static_cast<int>(graph.lanes[at_index(e.lane)].size());
    const int stale = std::max(0, others) + lane - 1;
    workers[stale] += lane;
    all += lane;
    sum += static_cast<double>(lane) * stale;
  }
  if (workers.empty()) return std::nullopt;
  const auto nearest_rank = [&](double share) {
    double up_to = 0.0;
    const auto reaches = [&](const auto& entry) { return (up_to += entry.second) >= std::ceil(share * all); };
    return static_cast<double>(std::ranges::find_if(workers, reaches)->first);
  };
  return ParameterServerResult::Staleness{sum / all, nearest_rank(0.5), nearest_rank(0.9), nearest_rank(0.99),
                                          static_cast<double>(workers.rbegin()->first)};
}

/// Passes of each lane, by iteration.
std::vector<std::vector<Seconds>> ends_of_passes(const ServerGraph& graph, const Execution& execution) {
  std::vector<std::vector<Seconds>> ends;
  for (const std::vector<TaskId>& tasks : graph.passes_done) {
    auto& own = ends.emplace_back();
    for (const TaskId task : tasks) own.push_back(execution.finish[at_index(task)]);
  }
  return ends;
}

/// When what counts begins and ends, and how many iterations a second each lane does at the same time.
struct Paces {
  Seconds from, to;
  std::vector<double> of_lane;
};

/// All lanes do as many iterations, which end when the last of them has done its passes.
Paces common_pace(const ServerGraph::Iterations& iterations, const std::vector<std::vector<Seconds>>& ends) {
  const auto end_of = [&](std::size_t iteration) {
    return std::ranges::max(ends | std::views::transform([&](const auto& own) { return own[iteration]; }));
  };
  const std::size_t last = ends.front().size() - 1 - at_index(iterations.run_out);
  const std::size_t first = at_index(std::clamp(iterations.warm_up - 1, 0, static_cast<int>(last) - 1));
  const Seconds from = end_of(first), to = end_of(last);
  return {from, to, std::vector<double>(ends.size(), number(last - first) / (to - from).value())};
}

Paces own_paces(const ServerGraph& graph, const std::vector<std::vector<Seconds>>& ends) {
  Paces paces{Seconds(0.0), Seconds::infinity(), {}};
  const bool meet = graph.meeting == ServerGraph::Meeting::everybody;
  const auto warm = [&](const std::vector<Seconds>& own) {
    return own[at_index(std::max(std::min(graph.iterations.warm_up, static_cast<int>(own.size()) - 1) - 1, 0))];
  };
  for (const std::vector<Seconds>& own : ends) {
    paces.from = std::max(paces.from, warm(own));
    paces.to = std::min(paces.to, own.back());
  }
  if (!(paces.from < paces.to)) paces.from = Seconds(0.0);  // very unequal workers: from the beginning on
  for (const std::vector<Seconds>& own : ends) {
    const Seconds from = meet ? paces.from : warm(own), to = meet ? paces.to : own.back();
    paces.of_lane.push_back((done_at(own, to) - done_at(own, from)) / (to - from).value());
  }
  return paces;
}

/// A step takes at least `least`.
void hold(ServerGraph::Times& times, Seconds least) {
  if (!(times.step < least)) return;
  times.compute_share *= times.step / least;
  times.step = least;
}

}  // namespace

std::vector<WorkerLane> lanes_of(const ParameterStore& store, int size) {
  std::vector<WorkerLane> lanes;
  add_lanes(0, store.worker_count(), size, lanes);
  return lanes;
}

std::vector<WorkerLane> usual_lanes(const ParameterStore& store) {
  const int workers = store.worker_count();
  const int usual = workers - std::min(store.slow.count, workers);
  std::vector<WorkerLane> lanes;
  if (store.consistency == Sync::Consistency::synchronous && !(store.compute_spread > 0.0)) {
    add_lanes(0, usual, workers, lanes);
    add_lanes(usual, workers, workers, lanes);
    return lanes;
  }
  if (static_cast<double>(workers) * store.server_count() <= most_messages_each) return lanes_of(store, 1);
  const int wanted = std::clamp(most_messages / store.server_count(), fewest_lanes, workers);
  const int size = (workers + wanted - 1) / wanted;
  add_lanes(0, usual, size, lanes);
  add_lanes(usual, workers, size, lanes);
  return lanes;
}

ServerGraph::Iterations usual_iterations(const ParameterStore& store) {
  ServerGraph::Iterations iterations;
  if (store.consistency == Sync::Consistency::synchronous && store.equal_workers()) {
    iterations.warm_up = 3;
    const bool random_orders = store.barrier && !store.first_layer_first;  // which need an average
    iterations.of_worker.assign(at_index(store.worker_count()), random_orders ? 35 : 6);
    return iterations;
  }
  // Random iterations need an average; large clusters average over workers as well.
  const double messages =
      2.0 * static_cast<double>(usual_lanes(store).size() * at_index(store.server_count()) * store.groups.size());
  const int counted = std::clamp(static_cast<int>(40'000.0 / messages), 4, 32);
  iterations.warm_up = std::max(2, counted / 4);  // the workers drift apart
  if (store.consistency == Sync::Consistency::bounded && store.slow.factor > 1.0 && store.slow.count > 0) {
    // Until the fast ones have met the bound: they gain factor − 1 iterations on every one of the slow.
    const double gained = (store.staleness + 1.0) / (store.slow.factor - 1.0);
    iterations.warm_up += static_cast<int>(std::min(std::ceil(gained), static_cast<double>(Sync::most_lead)));
  }
  const int warm_and_counted = iterations.warm_up + counted;
  const int ahead = store.consistency == Sync::Consistency::bounded ? store.staleness + 1 : 0;
  // Without chance they settle into a cycle: measured from then on.
  if (ahead > 0 && !(store.compute_spread > 0.0)) {
    iterations.warm_up = std::max(iterations.warm_up, warm_and_counted / 2);
  }
  iterations.run_out = ahead;
  const int all = warm_and_counted + ahead;
  for (int w = 0; w < store.worker_count(); ++w) {
    const bool own_speed = store.consistency == Sync::Consistency::asynchronous;
    const double share = own_speed && store.slow.count < store.worker_count() ? 1.0 / store.mean_factor(w) : 1.0;
    iterations.of_worker.push_back(std::max(2, static_cast<int>(std::ceil(all * share))));
  }
  return iterations;
}

ServerGraph::Times times_of(const ParameterStore& store, const ServerGraph& graph, const Execution& execution) {
  const std::vector<std::vector<Seconds>> ends = ends_of_passes(graph, execution);
  const bool asynchronous = store.consistency == Sync::Consistency::asynchronous;
  const Paces paces = asynchronous ? own_paces(graph, ends) : common_pace(graph.iterations, ends);
  ServerGraph::Times times;
  const Seconds passes = store.compute().total();
  double speed = 0.0, workers = 0.0;
  for (std::size_t lane = 0; lane < ends.size(); ++lane) {
    for (const int worker : graph.lanes[lane]) {
      double factor = 0.0;
      for (std::size_t i = 0; i < ends[lane].size(); ++i) factor += store.factor(worker, static_cast<int>(i));
      times.compute_share += passes.value() * paces.of_lane[lane] * factor / number(ends[lane].size());
    }
    speed += number(graph.lanes[lane].size()) * paces.of_lane[lane];
    workers += number(graph.lanes[lane].size());
  }
  times.step = Seconds(workers / speed);
  times.compute_share = std::min(1.0, times.compute_share / workers);
  times.staleness = staleness_of(store, graph, execution, paces.from, paces.to);
  return times;
}

ServerGraph::Times simulated_times(const ParameterStore& store, const ServerGraph& graph, const Execution& execution,
                                   const ParameterStore::Bounds& bounds) {
  ServerGraph::Times times = times_of(store, graph, execution);
  hold(times, std::max(bounds.link, bounds.server));
  return times;
}

ServerGraph build_estimated_graph(const ParameterStore& store, const Topology& topology) {
  ServerGraph::Iterations iterations = usual_iterations(store);
  iterations.of_worker.assign(iterations.of_worker.size(), std::ranges::max(iterations.of_worker));
  if (store.consistency == Sync::Consistency::synchronous && !(store.compute_spread > 0.0)) {
    return build_server_graph(store.with_slow_workers_last(), topology, iterations,
                              lanes_of(store, store.worker_count()));
  }
  return build_server_graph(store, topology, iterations, usual_lanes(store), ServerGraph::Meeting::nobody);
}

ServerGraph::Times estimated_times(const ParameterStore& store, const ServerGraph& graph, const Topology& topology,
                                   const Execution& execution, const ParameterStore::Bounds& bounds) {
  ServerGraph::Times times = times_of(store, graph, execution);
  hold(times, std::max(bounds.link, bounds.server));
  if (store.consistency == Sync::Consistency::synchronous && !store.equal_workers()) {
    const ParameterStore equal = store.with_fastest_workers(*std::ranges::max_element(graph.iterations.of_worker));
    const ServerGraph together =
        build_server_graph(equal, topology, graph.iterations, lanes_of(equal, equal.worker_count()));
    hold(times, times_of(equal, together, run(together.graph)).step);
  }
  return times;
}

}  // namespace foretrain
