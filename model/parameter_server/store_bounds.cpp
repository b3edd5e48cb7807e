// The closed forms: what no step with parameter servers can be shorter than.
#include <algorithm>

#include "model/base/number.hpp"
#include "model/collectives/link_load.hpp"
#include "model/parameter_server/store.hpp"

namespace foretrain {

namespace {

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

}  // namespace

ParameterStore::Bounds store_bounds(const ParameterStore& store, const Topology& topology) {
  ParameterStore::Bounds bounds;
  bounds.compute = store.compute().total() * step_factor(store) + store.host_between_steps;
  std::vector<Bytes> load(at_index(topology.links()));
  const auto carry = [&](const std::vector<Flow>& flows) {
    visit_links(flows, topology, [&](const Flow& flow, LinkId link) { load[at_index(link)] += flow.bytes; });
  };
  const bool one_by_one = store.consistency != Sync::Consistency::synchronous;
  const std::vector<Flow> pushes = messages_of(store, &ParameterStore::push);
  const std::vector<Flow> pulls = messages_of(store, &ParameterStore::pull);
  carry(pushes);
  carry(pulls);
  for (int s = 0; s < store.server_count(); ++s) {
    Seconds updating, connection;
    for (const ParameterStore::KeyGroup& group : store.groups) {
      // Servers on one socket each have their share of its rate, so that theirs is the time of the longest.
      updating += group.update[at_index(s)] * (one_by_one ? store.worker_count() : 1.0);
      const ParameterStore::Calls& calls = group.calls[at_index(s)];
      connection += calls.push + calls.pull - (one_by_one ? calls.lock : Seconds(0.0));
      bounds.server = std::max(bounds.server, calls.lock * (number(store.worker_count()) - (one_by_one ? 0.0 : 1.0)));
    }
    bounds.server = std::max({bounds.server, updating, connection});
  }
  for (LinkId link = 0; link < topology.links(); ++link) {
    if (!(load[at_index(link)] > Bytes(0.0))) continue;
    const Seconds time = load[at_index(link)] / topology.link_bandwidth(link);
    Seconds& bound = topology.link_kind(link) == LinkKind::memory ? bounds.server : bounds.link;
    bound = std::max(bound, time);
  }
  LinkLoad messages(topology);
  bounds.push = messages.busiest(pushes);
  bounds.pull = messages.busiest(pulls);
  return bounds;
}

}  // namespace foretrain
