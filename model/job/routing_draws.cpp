#include "model/job/routing_draws.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/statistics.hpp"
#include "model/base/words.hpp"
#include "model/collectives/contention.hpp"
#include "model/training/transfers/transfer_times.hpp"

namespace foretrain {

namespace {

std::string rule_of(const Fabric& fabric) {
  return std::holds_alternative<FatTree>(fabric.shape) ? std::string(name(UplinkRouting::hash))
                                                       : std::string(name(DragonflyRouting::valiant));
}

/// The job's time if its graph takes so long. Servers are read off iterations of which the graph has many;
/// every other result is its graph, and what stays the same beside it.
Seconds time_of(const Result& result, Seconds makespan, Seconds median) {
  if (result.train() != nullptr && result.train()->parameter_server) return result.time() * (makespan / median);
  return result.time() + (makespan - median);
}

RoutingSpread spread_of(const RoutingDraws& draws, const Fabric& fabric, const Result& result) {
  std::vector<double> times;
  for (const Seconds makespan : draws.makespans) {
    times.push_back(time_of(result, makespan, draws.makespans[draws.middle]).value());
  }
  return {rule_of(fabric), static_cast<int>(times.size()), result.time(), Seconds(quantile(times, 0.9)),
          Seconds(quantile(times, 0.99))};
}

/// A graph whose flows move over routes as they are drawn.
class DrawnGraph {
 public:
  DrawnGraph(const TaskGraph& graph, const Topology& planned, std::span<const BackgroundFlow> background)
      : graph_(graph), background_(background), planned_(graph.blocks().size()) {
    int alone = -1;  // a block whose flows meet nothing of their own transfer; such are numbered downwards
    for (std::size_t number = 0; number < planned_.size(); ++number) {
      const Block& block = graph.blocks()[number];
      if (!block.flows || !(block.uncontended > Seconds(0.0))) continue;
      planned_[number] = uncontended_time(*block.flows, planned, background);
      if (!(planned_[number] > Seconds(0.0))) continue;
      parts_[block.links.transfer >= 0 ? block.links.transfer : alone--].push_back(number);
    }
  }

  [[nodiscard]] Execution run_over(const Topology& drawn) const {
    std::vector<Block> blocks(graph_.blocks().begin(), graph_.blocks().end());
    for (const auto& [transfer, numbers] : parts_) move_over(drawn, numbers, blocks);
    return run(graph_.with_blocks(std::move(blocks)));
  }

 private:
  /// Parts of one transfer, whose routes may now meet others than before. What made a block longer than its flows
  /// stays.
  void move_over(const Topology& drawn, const std::vector<std::size_t>& numbers, std::vector<Block>& blocks) const {
    std::vector<Step::Transfer::Part> parts;
    for (const std::size_t number : numbers) {
      const Block& block = blocks[number];
      parts.push_back({*block.flows, block.uncontended, {block.links.number}});
    }
    if (parts.size() == 1) parts.front().uncontended = uncontended_time(parts.front().lowered, drawn, background_);
    set_times(parts, blocks[numbers.front()].links.among, drawn, background_);
    for (std::size_t p = 0; p < numbers.size(); ++p) {
      Block& block = blocks[numbers[p]];
      const double longer = block.uncontended / planned_[numbers[p]];
      block.uncontended = longer * parts[p].uncontended;
      if (numbers.size() == 1) continue;  // the others move nothing
      parts[p].links *= longer;
      parts[p].links.transfer = block.links.transfer;
      block.links = std::move(parts[p].links);
    }
  }

  const TaskGraph& graph_;
  std::span<const BackgroundFlow> background_;
  std::vector<Seconds> planned_;                   ///< by block: what its flows take over the planned routes
  std::map<int, std::vector<std::size_t>> parts_;  ///< by transfer
};

}  // namespace

Execution run_uncontended(const TaskGraph& graph, const Topology& planned, const Topology& drawn,
                          std::span<const BackgroundFlow> background) {
  if (planned.serial() == drawn.serial()) return run(graph);
  return DrawnGraph(graph, planned, background).run_over(drawn);
}

RoutingDraws draw_routes(const Job& job, const ExecutorOn& execute) {
  const Cluster& cluster = job.scenario().cluster;
  // No two flows over drawn routes are alike: wherever one ends, the rates of all others change.
  const bool estimated = flows_of(job.graph()) * routes_drawn > many_flows / 10.0;
  std::optional<DrawnGraph> graph;
  if (estimated) graph.emplace(job.graph(), job.topology(), job.scenario().background);
  std::vector<std::pair<Seconds, int>> drawn;
  for (int draw = 0; draw < routes_drawn; ++draw) {
    const Topology topology(cluster, draw);
    drawn.emplace_back(graph ? graph->run_over(topology).makespan : execute(job.graph(), topology).makespan, draw);
  }
  std::ranges::sort(drawn);
  const std::size_t middle = drawn.size() / 2;
  RoutingDraws draws{Topology(cluster, drawn[middle].second), {}, middle, {}};
  for (const auto& [makespan, draw] : drawn) draws.makespans.push_back(makespan);
  // Nothing leaves more choice than the plain topology of a fat tree; a dragonfly's minimal ways leave none.
  const bool freest = std::holds_alternative<FatTree>(cluster.network.fabric.shape);
  std::optional<Execution> plain;
  if (freest) plain = execute(job.graph(), job.topology());
  const Seconds planned = plain ? plain->makespan : Seconds(0.0);
  Seconds median = draws.makespans[middle];
  if (estimated && median > Seconds(0.0)) {
    draws.run = execute(job.graph(), draws.median);
    const Seconds estimate = std::exchange(median, draws.run->makespan);
    for (Seconds& makespan : draws.makespans) makespan *= median / estimate;
  }
  for (Seconds& makespan : draws.makespans) makespan = std::max(makespan, planned);
  if (median < planned) {
    draws.median = job.topology();
    draws.run = std::move(plain);
  }
  return draws;
}

Result result_over_fabric(const Job& job, const ExecutorOn& execute, Detail detail) {
  if (!job.topology().draws_routes()) {
    return result_of(
        job, [&](const TaskGraph& graph) { return execute(graph, job.topology()); }, detail);
  }
  const RoutingDraws draws = draw_routes(job, execute);
  const Executor over_median = [&](const TaskGraph& graph) {
    return draws.run && &graph == &job.graph() ? *draws.run : execute(graph, draws.median);
  };
  Result result = result_of(job, over_median, detail);
  result.routing = spread_of(draws, job.scenario().cluster.network.fabric, result);
  return result;
}

}  // namespace foretrain
