#include "reports/explain/link_use.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <utility>

#include "model/base/number.hpp"
#include "model/collectives/contention.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

constexpr int slices = 120;  ///< of the time

/// Bytes that each link carries, in all or of what is asked for.
class CarriedBytes {
 public:
  explicit CarriedBytes(const Topology& topology)
      : topology_(topology), carried_(static_cast<std::size_t>(topology.links())) {}

  void add(const LoweredCollective& lowered, double times) {
    for (const LoweredCollective::Phase& phase : lowered.phases) {
      for (const Flow& flow : phase.flows) add(flow.source, flow.destination, flow.bytes * (times * phase.repeat));
    }
  }
  void add(EndpointId source, EndpointId destination, Bytes bytes) {
    route_.clear();
    topology_.append_route(source, destination, route_);
    for (const LinkId link : route_) carried_[at_index(link)] += bytes;
  }
  [[nodiscard]] Bytes on(LinkId link) const { return carried_[at_index(link)]; }
  void clear() { std::ranges::fill(carried_, Bytes(0.0)); }

 private:
  const Topology& topology_;
  std::vector<Bytes> carried_;
  std::vector<LinkId> route_;
};

/// By block: how many tasks are of it.
std::vector<int> counts_of(const TaskGraph& graph) {
  std::vector<int> counts(graph.blocks().size());
  for (const Task& task : graph.tasks()) ++counts[at_index(task.block)];
  return counts;
}

/// Calls `visit` with the ends of background traffic and what it moves; with no limit it has no bytes of its own.
template <typename Visit>
void visit_background(const Scenario& scenario, const Topology& topology, Seconds time, const Visit& visit) {
  for (const BackgroundFlow::Route& route : background_routes(scenario.background, topology)) {
    if (route.rate < BytesPerSecond::infinity()) visit(route.source, route.destination, route.rate * time);
  }
}

/// "gpu0>nvswitch" of "node3/gpu0>nvswitch"; of a fabric's link its name without numbers.
std::string common_name(const std::string& name, bool several_nodes) {
  const std::size_t slash = name.find('/');
  if (!several_nodes || slash != std::string::npos) return name.substr(slash == std::string::npos ? 0 : slash + 1);
  return without_numbers(name);
}

/// Links by their common names, and which of each carries most.
std::vector<LinkUse> grouped(const Topology& topology, const CarriedBytes& carried, Seconds time) {
  std::vector<LinkUse> uses;
  std::map<std::string, std::size_t> place;
  for (LinkId id = 0; id < topology.links(); ++id) {
    const DirectedLink link = topology.link(id);
    const std::string name = common_name(link.name, topology.nodes() > 1);
    const auto [known, is_new] = place.try_emplace(name, uses.size());
    if (is_new) {
      const std::size_t arrow = name.find('>');
      LinkUse& use = uses.emplace_back(LinkUse{.name = name, .kind = link.kind, .bandwidth = link.bandwidth});
      if (arrow != std::string::npos) use.from = name.substr(0, arrow), use.to = name.substr(arrow + 1);
    }
    LinkUse& use = uses[known->second];
    const double share = link.bandwidth.value() > 0.0 ? carried.on(id) / link.bandwidth / time : 0.0;
    if (use.busiest_link < 0 || share > use.most) {
      use.busiest_link = id;
      use.busiest = carried.on(id);
      use.most = share;
    }
    use.mean += (share - use.mean) / ++use.links;
  }
  return uses;
}

/// Notes what each block puts on the busiest link of each group, and when.
class Profiles {
 public:
  Profiles(std::vector<LinkUse>& uses, const Topology& topology, Seconds time)
      : uses_(uses), topology_(topology), time_(time), until_(uses.size()) {
    for (LinkUse& use : uses_) use.slices.assign(slices, 0.0);
  }

  void add(const TaskGraph& graph, const Execution& execution) {
    CarriedBytes carried(topology_);
    std::vector<std::vector<std::pair<std::size_t, Bytes>>> of_block(graph.blocks().size());
    const std::vector<int> counts = counts_of(graph);
    for (std::size_t block = 0; block < of_block.size(); ++block) {
      const Block& own = graph.blocks()[block];
      if (!own.flows || counts[block] == 0) continue;
      carried.clear();
      carried.add(*own.flows, 1.0);
      for (std::size_t use = 0; use < uses_.size(); ++use) {
        const Bytes bytes = carried.on(uses_[use].busiest_link);
        if (bytes > Bytes(0.0)) of_block[block].emplace_back(use, bytes);
      }
    }
    std::vector<std::size_t> by_start(graph.tasks().size());
    std::iota(by_start.begin(), by_start.end(), 0U);
    std::ranges::stable_sort(by_start, {}, [&](std::size_t task) { return execution.start[task]; });
    for (const std::size_t task : by_start) {
      const BlockId block = graph.tasks()[task].block;
      for (const auto& [use, bytes] : of_block[at_index(block)]) {
        const Seconds start = execution.start[task], end = execution.finish[task];
        const Block& own = graph.blocks()[at_index(block)];
        add(use, own.kind != nullptr ? own.kind : own.name, bytes, start, end);
        uses_[use].in_use += std::max(end - std::max(start, until_[use]), Seconds(0.0));
        until_[use] = std::max(until_[use], end);
      }
    }
  }

  void add_background(const Scenario& scenario) {
    CarriedBytes carried(topology_);
    visit_background(scenario, topology_, time_,
                     [&](EndpointId from, EndpointId to, Bytes bytes) { carried.add(from, to, bytes); });
    for (std::size_t use = 0; use < uses_.size(); ++use) {
      const Bytes bytes = carried.on(uses_[use].busiest_link);
      if (bytes > Bytes(0.0)) add(use, "background traffic", bytes, Seconds(0.0), time_);
    }
  }

 private:
  void add(std::size_t number, const std::string& name, Bytes bytes, Seconds start, Seconds end) {
    LinkUse& use = uses_[number];
    auto user = std::ranges::find(use.users, name, &LinkUse::User::name);
    if (user == use.users.end()) user = use.users.insert(user, {name, Bytes(0.0)});
    user->bytes += bytes;
    if (!(end > start)) return;
    const Seconds slice = time_ / slices;
    const double share = bytes / use.bandwidth / (end - start);  // of the bandwidth, while it moves
    const auto last = std::min(static_cast<int>(end / slice), slices - 1);
    for (int i = static_cast<int>(start / slice); i <= last; ++i) {
      const Seconds within = std::min(end, slice * (i + 1.0)) - std::max(start, slice * static_cast<double>(i));
      use.slices[at_index(i)] += share * std::max(within / slice, 0.0);
    }
  }

  std::vector<LinkUse>& uses_;
  const Topology& topology_;
  Seconds time_;
  std::vector<Seconds> until_;  ///< by use: what has been counted as its time in use
};

}  // namespace

std::string without_numbers(const std::string& link) {
  std::string words;
  std::ranges::copy_if(link, std::back_inserter(words), [](unsigned char c) { return std::isdigit(c) == 0; });
  return words;
}

LinkUses link_uses(const Scenario& scenario, Fidelity fidelity) {
  const bool uncut = scenario.plan.split.has_value();
  const std::unique_ptr<Job> job =
      make_job(scenario, fidelity, Recipes::none, uncut ? InsideLayers::merged : InsideLayers::seen);
  const ExecutorOn execute = executor_on(*job, fidelity);
  const Topology topology = job->topology().draws_routes() ? draw_routes(*job, execute).median : job->topology();
  const TaskGraph& graph = job->graph();
  const Execution execution = execute(graph, topology);
  LinkUses uses{scenario.cluster.node.vertices, {}, topology.nodes(), execution.makespan, uncut,
                waits_of(graph, execution)};
  CarriedBytes carried(topology);
  const std::vector<int> counts = counts_of(graph);
  for (std::size_t block = 0; block < counts.size(); ++block) {
    const std::optional<LoweredCollective>& flows = graph.blocks()[block].flows;
    if (flows && counts[block] > 0) carried.add(*flows, counts[block]);
  }
  visit_background(scenario, topology, uses.time,
                   [&](EndpointId from, EndpointId to, Bytes bytes) { carried.add(from, to, bytes); });
  uses.links = grouped(topology, carried, uses.time);
  Profiles profiles(uses.links, topology, uses.time);
  profiles.add(graph, execution);
  profiles.add_background(scenario);
  for (LinkUse& use : uses.links) {
    std::ranges::stable_sort(use.users, std::ranges::greater{}, &LinkUse::User::bytes);
  }
  return uses;
}

}  // namespace foretrain
