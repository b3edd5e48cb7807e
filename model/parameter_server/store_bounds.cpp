// The closed forms: what no step with parameter servers can be shorter than.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "model/base/number.hpp"
#include "model/parameter_server/store.hpp"

namespace foretrain {

namespace {

/// Length of an iteration, in passes of mean length, of workers that are at most `lead` iterations apart. Worker w
/// begins iteration i when it has done i − 1 and all others have done i − lead − 1. No messages, no servers.
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

/// Factor by which unequal workers' passes lengthen a step, see store_bounds().
double step_factor(const ParameterStore& store) {
  if (store.equal_workers()) return 1.0;
  if (store.consistency == Sync::Consistency::synchronous) return slowest_factor(store, 0);
  if (store.consistency == Sync::Consistency::bounded) return slowest_factor(store, store.staleness);
  double speed = 0.0;
  for (int w = 0; w < store.worker_count(); ++w) speed += 1.0 / store.mean_factor(w);
  return store.worker_count() / speed;
}

}  // namespace

std::vector<double> all_parameters(const ParameterStore& store) {
  std::vector<double> all(at_index(store.server_count()));
  for (const ParameterStore::KeyGroup& group : store.groups) {
    for (std::size_t s = 0; s < all.size(); ++s) all[s] += group.parameters[s];
  }
  return all;
}

MessageLoad message_load(const ParameterStore& store, const Topology& topology, std::span<const int> workers, bool push,
                         const std::vector<std::vector<double>>& parameters) {
  const std::vector<EndpointId>& places = push ? store.push_to : store.pull_from;
  // Servers of one place share its connections to each worker.
  std::map<EndpointId, std::vector<double>> at_place;  // by amount
  for (std::size_t s = 0; s < places.size(); ++s) {
    std::vector<double>& amounts = at_place.try_emplace(places[s], parameters.size()).first->second;
    for (std::size_t i = 0; i < amounts.size(); ++i) amounts[i] += parameters[i][s];
  }
  MessageLoad load;
  load.busiest.resize(parameters.size());
  std::vector<std::int32_t> index_of(at_index(topology.links()), -1);  // in load.links
  std::vector<Bytes> of_one;  // by that: of one parameter of each of a place's servers; zero between places
  std::vector<std::size_t> crossed;
  std::vector<LinkId> route;
  for (const auto& [place, amounts] : at_place) {
    if (std::ranges::all_of(amounts, [](double amount) { return amount == 0.0; })) continue;
    Seconds& latency = load.latency[place];
    Seconds connection;
    for (const int worker : workers) {
      if (push && worker < store.pushed_before) continue;
      const std::vector<int>& gpus = store.workers[at_index(worker)];
      const Bytes each = (push ? store.gradient : store.weight) / number(gpus.size());
      for (const int gpu : gpus) {
        if (gpu == place) continue;
        const EndpointId source = push ? gpu : place, destination = push ? place : gpu;
        latency = std::max(latency, topology.latency(source, destination));
        route.clear();
        topology.append_route(source, destination, route);
        const BytesPerSecond most =
            topology.limits_connections() ? topology.most_rate(source, destination) : BytesPerSecond::infinity();
        connection = std::max(connection, each / most);
        for (const LinkId link : route) {
          std::int32_t& known = index_of[at_index(link)];
          if (known < 0) {
            known = static_cast<std::int32_t>(load.links.size());
            load.links.push_back({link, std::vector<Bytes>(parameters.size())});
            of_one.emplace_back();
          }
          if (of_one[at_index(known)] == Bytes(0.0)) crossed.push_back(at_index(known));
          of_one[at_index(known)] += each;
        }
      }
    }
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      load.busiest[i] = std::max(load.busiest[i], connection * amounts[i]);
    }
    for (const std::size_t link : crossed) {
      const Bytes each = std::exchange(of_one[link], Bytes(0.0));
      for (std::size_t i = 0; i < amounts.size(); ++i) load.links[link].carried[i] += each * amounts[i];
    }
    crossed.clear();
  }
  for (const auto& [link, carried] : load.links) {
    for (std::size_t i = 0; i < carried.size(); ++i) {
      if (!(carried[i] > Bytes(0.0))) continue;
      load.busiest[i] = std::max(load.busiest[i], carried[i] / topology.link_bandwidth(link));
    }
  }
  return load;
}

ParameterStore::Bounds store_bounds(const ParameterStore& store, const Topology& topology) {
  ParameterStore::Bounds bounds;
  bounds.compute = store.compute().total() * step_factor(store) + store.host_between_steps;
  std::vector<int> workers(store.workers.size());
  std::iota(workers.begin(), workers.end(), 0);
  std::vector<Bytes> load(at_index(topology.links()));
  const auto carry = [&](bool push) {
    const MessageLoad messages = message_load(store, topology, workers, push, {all_parameters(store)});
    for (const auto& [link, carried] : messages.links) load[at_index(link)] += carried.front();
    return messages.busiest.front();
  };
  bounds.push = carry(true);
  bounds.pull = carry(false);
  const bool one_by_one = store.consistency != Sync::Consistency::synchronous;
  for (int s = 0; s < store.server_count(); ++s) {
    Seconds updating, pushing, pulling;
    for (const ParameterStore::KeyGroup& group : store.groups) {
      // Servers on one socket each have their share of its rate, so that theirs is the time of the longest.
      updating += group.update[at_index(s)] * (one_by_one ? store.worker_count() : 1.0);
      const ParameterStore::Calls& calls = group.calls[at_index(s)];
      pushing += calls.push - (one_by_one ? calls.lock : Seconds(0.0));
      pulling += calls.pull;
      bounds.server = std::max(bounds.server, calls.lock * (number(store.worker_count()) - (one_by_one ? 0.0 : 1.0)));
    }
    bounds.server = std::max({bounds.server, updating, pushing, pulling});
  }
  for (LinkId link = 0; link < topology.links(); ++link) {
    if (!(load[at_index(link)] > Bytes(0.0))) continue;
    const Seconds time = load[at_index(link)] / topology.link_bandwidth(link);
    Seconds& bound = topology.link_kind(link) == LinkKind::memory ? bounds.server : bounds.link;
    bound = std::max(bound, time);
  }
  return bounds;
}

}  // namespace foretrain
