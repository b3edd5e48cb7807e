// From dates to speeds and staleness, and the closed forms.
#include <algorithm>
#include <map>
#include <ranges>

#include "model/base/number.hpp"
#include "model/base/statistics.hpp"
#include "model/collectives/link_load.hpp"
#include "model/parameter_server/server_graph.hpp"

namespace foretrain {

namespace {

/// ServerGraph::Iterations that a worker has done at a date, parts of one included.
double done_at(const std::vector<Seconds>& ends, Seconds date) {
  const auto next = std::ranges::upper_bound(ends, date);
  const auto whole = static_cast<double>(next - ends.begin());
  if (next == ends.end()) return whole;
  const Seconds before = next == ends.begin() ? Seconds(0.0) : *(next - 1);
  return whole + (date - before) / (*next - before);
}

std::optional<ParameterServerResult::Staleness> staleness_of(const ParameterStore& store, const ServerGraph& graph,
                                                             const Execution& execution, Seconds from, Seconds to) {
  if (store.consistency == Sync::Consistency::synchronous)
    return ParameterServerResult::Staleness{};                  // all pull after all have pushed
  std::map<std::pair<int, int>, std::vector<Seconds>> updates;  // of a key group on a server
  for (const ServerGraph::Exchange& e : graph.exchanges) {
    std::vector<Seconds>& dates = updates[{e.group, e.server}];
    dates.insert(dates.end(), graph.lanes[at_index(e.lane)].size(), execution.finish[at_index(e.update)]);
  }
  for (auto& [key, dates] : updates) std::ranges::sort(dates);
  std::vector<int> others;
  double sum = 0.0;
  for (const ServerGraph::Exchange& e : graph.exchanges) {
    const Seconds applied = execution.finish[at_index(e.update)];
    if (e.pull < 0 || applied < from || applied > to) continue;
    // What was applied until the server began to send is in the weights.
    const std::vector<Seconds>& dates = updates.at({e.group, e.server});
    const auto first = std::ranges::upper_bound(dates, execution.start[at_index(e.pull)]);
    const auto own = std::ranges::lower_bound(dates, applied);
    // Each of the lane's other workers applies one update between a worker's pull and its own.
    const std::size_t lane = graph.lanes[at_index(e.lane)].size();
    const int stale = std::max(0, static_cast<int>(own - first)) + static_cast<int>(lane) - 1;
    others.insert(others.end(), lane, stale);
    sum += static_cast<double>(lane) * stale;
  }
  if (others.empty()) return std::nullopt;
  std::ranges::sort(others);
  return ParameterServerResult::Staleness{sum / static_cast<double>(others.size()), nearest_rank(others, 0.5),
                                          nearest_rank(others, 0.9), nearest_rank(others, 0.99),
                                          static_cast<double>(others.back())};
}

/// In the long run bounded workers go as fast as the slow ones, however many iterations it takes until the others are
/// as far ahead as they may be.
void follow_the_slow(const ParameterStore& store, const ServerGraph& graph, std::vector<double>& paces) {
  const auto factor = [&](const WorkerLane& lane) { return store.mean_factor(lane.front()); };
  const double most = std::ranges::max(graph.lanes | std::views::transform(factor));
  double sum = 0.0, workers = 0.0;
  for (std::size_t lane = 0; lane < paces.size(); ++lane) {
    if (factor(graph.lanes[lane]) < most) continue;
    sum += number(graph.lanes[lane].size()) * paces[lane];
    workers += number(graph.lanes[lane].size());
  }
  paces.assign(paces.size(), sum / workers);
}

/// Length of an iteration, in passes of usual length, of workers that are at most `lead` iterations apart: worker w
/// begins iteration i when it has done the one before and all others have done i − lead − 1. No messages, no servers.
double slowest_factor(const ParameterStore& store, int lead) {
  constexpr int warm_up = 64, counted = 192;  // random iterations need an average
  std::vector<double> done(at_index(store.worker_count()), 0.0);
  std::vector<double> all_done;  // by iteration
  for (int i = 0; i < warm_up + counted; ++i) {
    const double bound = i > lead ? all_done[at_index(i - lead - 1)] : 0.0;
    for (int w = 0; w < store.worker_count(); ++w) {
      done[at_index(w)] = std::max(done[at_index(w)], bound) + store.factor(w, i);
    }
    all_done.push_back(*std::ranges::max_element(done));
  }
  return (all_done.back() - all_done[warm_up - 1]) / counted;
}

/// How much longer unequal workers' passes make a step, see store_bounds().
double step_factor(const ParameterStore& store) {
  if (store.equal_workers()) return 1.0;
  if (store.consistency == Sync::Consistency::synchronous) return slowest_factor(store, 0);
  if (store.consistency == Sync::Consistency::bounded) return slowest_factor(store, store.staleness);
  double speed = 0.0;
  for (int w = 0; w < store.worker_count(); ++w) speed += 1.0 / store.mean_factor(w);
  return store.worker_count() / speed;
}

/// All workers' messages of one step in one direction.
std::vector<Flow> messages_of(const ParameterStore& store,
                              std::vector<Flow> (ParameterStore::*direction)(int, int, int) const) {
  std::vector<Flow> all;
  for (int w = 0; w < store.worker_count(); ++w) {
    for (int g = 0; g < static_cast<int>(store.groups.size()); ++g) {
      for (int s = 0; s < store.server_count(); ++s) {
        const std::vector<Flow> flows = (store.*direction)(w, g, s);
        all.insert(all.end(), flows.begin(), flows.end());
      }
    }
  }
  return all;
}

/// A step takes at least `least`.
void hold(ServerGraph::Times& times, Seconds least) {
  if (!(times.step < least)) return;
  times.compute_share *= times.step / least;
  times.step = least;
}

}  // namespace

ServerGraph::Times times_of(const ParameterStore& store, const ServerGraph& graph, const Execution& execution) {
  std::vector<std::vector<Seconds>> ends;
  Seconds from;
  Seconds to = Seconds::infinity();
  for (const std::vector<TaskId>& tasks : graph.passes_done) {
    auto& own = ends.emplace_back();
    for (const TaskId task : tasks) own.push_back(execution.finish[at_index(task)]);
    const int warm = std::min(graph.iterations.warm_up, static_cast<int>(own.size()) - 1);
    from = std::max(from, own[at_index(std::max(warm - 1, 0))]);
    to = std::min(to, own.back());
  }
  if (!(from < to)) from = Seconds(0.0);  // very unequal workers: from the beginning on
  std::vector<double> paces;
  for (const std::vector<Seconds>& own : ends)
    paces.push_back((done_at(own, to) - done_at(own, from)) / (to - from).value());
  if (store.consistency == Sync::Consistency::bounded) follow_the_slow(store, graph, paces);
  ServerGraph::Times times;
  double speed = 0.0;
  const Seconds passes = store.compute().total();
  double workers = 0.0;  // in lanes of the first one's size
  for (std::size_t lane = 0; lane < ends.size(); ++lane) {
    const double weight = number(graph.lanes[lane].size()) / number(graph.lanes[0].size());
    const double own = paces[lane];
    double factor = 0.0;
    for (std::size_t i = 0; i < ends[lane].size(); ++i) {
      factor += store.factor(graph.lanes[lane].front(), static_cast<int>(i));
    }
    times.compute_share += weight * (passes.value() * own * factor / static_cast<double>(ends[lane].size()));
    speed += weight * own;
    workers += weight;
  }
  times.step = Seconds(workers / speed);
  times.compute_share = std::min(1.0, times.compute_share / workers);
  times.staleness = staleness_of(store, graph, execution, from, to);
  return times;
}

ParameterStore::Bounds store_bounds(const ParameterStore& store, const Topology& topology) {
  ParameterStore::Bounds bounds;
  bounds.compute = store.compute().total() * step_factor(store) + store.host_between_steps;
  std::vector<Bytes> load(at_index(topology.links()));
  std::vector<LinkId> links;
  const auto carry = [&](const std::vector<Flow>& flows) {
    for (const Flow& flow : flows) {
      links.clear();
      topology.append_route(flow.source, flow.destination, links);
      for (const LinkId link : links) load[at_index(link)] += flow.bytes;
    }
  };
  const bool one_by_one = store.consistency != Sync::Consistency::synchronous;
  std::map<EndpointId, Seconds> updating;
  for (int s = 0; s < store.server_count(); ++s) {
    for (int g = 0; g < static_cast<int>(store.groups.size()); ++g) {
      for (int w = 0; w < store.worker_count(); ++w) {
        carry(store.push(w, g, s));
        carry(store.pull(w, g, s));
      }
      // Servers on one socket each have their share of its rate, so that theirs is the time of the longest.
      updating[s] += store.groups[at_index(g)].update[at_index(s)] * (one_by_one ? store.worker_count() : 1.0);
    }
  }
  for (const auto& [server, time] : updating) bounds.server = std::max(bounds.server, time);
  for (int s = 0; s < store.server_count(); ++s) {
    Seconds connection;
    for (const ParameterStore::KeyGroup& group : store.groups) {
      const ParameterStore::Calls& calls = group.calls[at_index(s)];
      connection += calls.push + calls.pull - (one_by_one ? calls.lock : Seconds(0.0));
      bounds.server = std::max(bounds.server, calls.lock * (number(store.worker_count()) - (one_by_one ? 0.0 : 1.0)));
    }
    bounds.server = std::max(bounds.server, connection);
  }
  for (LinkId link = 0; link < topology.links(); ++link) {
    if (!(load[at_index(link)] > Bytes(0.0))) continue;
    const Seconds time = load[at_index(link)] / topology.link_bandwidth(link);
    Seconds& bound = topology.link_kind(link) == LinkKind::memory ? bounds.server : bounds.link;
    bound = std::max(bound, time);
  }
  LinkLoad messages(topology);
  bounds.push = messages.busiest(messages_of(store, &ParameterStore::push));
  bounds.pull = messages.busiest(messages_of(store, &ParameterStore::pull));
  return bounds;
}

ServerGraph::Times simulated_times(const ParameterStore& store, const ServerGraph& graph, const Execution& execution,
                                   const ParameterStore::Bounds& bounds) {
  ServerGraph::Times times = times_of(store, graph, execution);
  hold(times, std::max(bounds.link, bounds.server));
  return times;
}

ServerGraph::Times estimated_times(const ParameterStore& store, const ServerGraph& graph, const Topology& topology,
                                   const Execution& execution, const ParameterStore::Bounds& bounds) {
  ServerGraph::Times times = times_of(store, graph, execution);
  hold(times, std::max(bounds.link, bounds.server));
  if (store.consistency == Sync::Consistency::synchronous && !store.equal_workers()) {
    const ParameterStore equal = store.with_fastest_workers(*std::ranges::max_element(graph.iterations.of_worker));
    const ServerGraph together = build_server_graph(equal, topology, graph.iterations, all_in_one_lane(equal));
    hold(times, times_of(equal, together, run(together.graph)).step);
  }
  return times;
}

}  // namespace foretrain
