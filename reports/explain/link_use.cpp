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

/// Bytes by link, of those that carry any.
using Carried = std::map<LinkId, Bytes>;

/// By block: what one task of it puts on the links.
std::vector<Carried> carried_by_blocks(const TaskGraph& graph, const Topology& topology) {
  std::vector<Carried> carried(graph.blocks().size());
  for (std::size_t block = 0; block < carried.size(); ++block) {
    if (!graph.blocks()[block].flows) continue;
    for (const LoweredCollective::Phase& phase : graph.blocks()[block].flows->phases) {
      visit_links(phase.flows, topology,
                  [&](const Flow& flow, LinkId link) { carried[block][link] += flow.bytes * phase.repeat; });
    }
  }
  return carried;
}

/// Of the traffic whose rate is stated: with no limit it has no bytes of its own.
Carried carried_by_background(const Scenario& scenario, const Topology& topology, Seconds time) {
  Carried carried;
  for (const Flow& route : background_flows(scenario.background, topology)) {
    if (!is_finite(route.most_rate)) continue;
    for (const LinkId link : topology.route(route.source, route.destination).links)
      carried[link] += route.most_rate * time;
  }
  return carried;
}

/// "gpu0>nvswitch" of "node3/gpu0>nvswitch"; of a fabric's link its name without numbers.
std::string common_name(const std::string& name, bool several_nodes) {
  const std::size_t slash = name.find('/');
  if (!several_nodes || slash != std::string::npos) return name.substr(slash == std::string::npos ? 0 : slash + 1);
  return without_numbers(name);
}

/// Links by their common names, and which of each carries most.
std::vector<LinkUse> by_group(const Topology& topology, const std::vector<Bytes>& carried, Seconds time) {
  std::vector<LinkUse> uses;
  std::map<std::string, std::size_t> place;
  for (LinkId id = 0; id < topology.links(); ++id) {
    const DirectedLink link = topology.link(id);
    const std::string name = common_name(link.name, topology.nodes() > 1);
    const auto [known, is_new] = place.try_emplace(name, uses.size());
    if (is_new) uses.push_back({.name = name, .kind = link.kind, .bandwidth = link.bandwidth});
    LinkUse& use = uses[known->second];
    const double share = link.bandwidth.value() > 0.0 ? carried[at_index(id)] / link.bandwidth / time : 0.0;
    if (use.busiest_link < 0 || share > use.most) {
      use.busiest_link = id;
      use.busiest = carried[at_index(id)];
      use.most = share;
    }
    use.mean += (share - use.mean) / ++use.links;
  }
  return uses;
}

/// Notes what each block puts on the busiest link of each group, and when.
class Profiles {
 public:
  Profiles(std::vector<LinkUse>& uses, Seconds time) : uses_(uses), time_(time), until_(uses.size()) {
    for (LinkUse& use : uses_) use.slices.assign(slices, 0.0);
  }

  void add(const TaskGraph& graph, const Execution& execution, const std::vector<Carried>& carried) {
    std::vector<std::vector<std::pair<std::size_t, Bytes>>> of_block;
    for (const Carried& own : carried) of_block.push_back(on_busiest(own));
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

  void add_background(const Carried& carried) {
    for (const auto& [use, bytes] : on_busiest(carried)) add(use, "background traffic", bytes, Seconds(0.0), time_);
  }

 private:
  [[nodiscard]] std::vector<std::pair<std::size_t, Bytes>> on_busiest(const Carried& carried) const {
    std::vector<std::pair<std::size_t, Bytes>> found;
    for (std::size_t use = 0; use < uses_.size(); ++use) {
      const auto own = carried.find(uses_[use].busiest_link);
      if (own != carried.end() && own->second > Bytes(0.0)) found.emplace_back(use, own->second);
    }
    return found;
  }

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
  LinkUses uses{{}, topology.nodes(), execution.makespan, uncut, waits_of(graph, execution)};
  const std::vector<Carried> of_block = carried_by_blocks(graph, topology);
  const Carried background = carried_by_background(scenario, topology, uses.time);
  std::vector<Bytes> all(at_index(topology.links()));
  const auto add = [&](const Carried& carried, double times) {
    for (const auto& [link, bytes] : carried) all[at_index(link)] += bytes * times;
  };
  std::vector<int> tasks(of_block.size());
  for (const Task& task : graph.tasks()) ++tasks[at_index(task.block)];
  for (std::size_t block = 0; block < tasks.size(); ++block) add(of_block[block], tasks[block]);
  add(background, 1.0);
  uses.links = by_group(topology, all, uses.time);
  Profiles profiles(uses.links, uses.time);
  profiles.add(graph, execution, of_block);
  profiles.add_background(background);
  for (LinkUse& use : uses.links) {
    std::ranges::stable_sort(use.users, std::ranges::greater{}, &LinkUse::User::bytes);
  }
  return uses;
}

}  // namespace foretrain
