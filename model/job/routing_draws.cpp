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

/// What the job's time is where its graph takes so long. Servers are read off iterations of which the graph has many;
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

/// A block whose flows meet nothing of their own transfer.
void move_over(Block& block, const Topology& planned, const Topology& drawn,
               std::span<const BackgroundFlow> background) {
  const Seconds before = uncontended_time(*block.flows, planned, background);
  if (before > Seconds(0.0)) block.uncontended *= uncontended_time(*block.flows, drawn, background) / before;
}

/// Parts of one transfer, whose routes may now meet others than before. What made a block longer than its flows stays.
void move_over(const std::vector<Block*>& blocks, const Topology& planned, const Topology& drawn,
               std::span<const BackgroundFlow> background) {
  std::vector<Step::Transfer::Part> parts;
  for (const Block* block : blocks) parts.push_back({*block->flows, block->uncontended, {block->links.number}});
  set_times(parts, blocks.front()->links.among, drawn, background);
  for (std::size_t p = 0; p < blocks.size(); ++p) {
    Block& block = *blocks[p];
    const Seconds before = uncontended_time(*block.flows, planned, background);
    if (!(before > Seconds(0.0))) continue;
    const double longer = block.uncontended / before;
    block.uncontended = longer * parts[p].uncontended;
    parts[p].links *= longer;
    parts[p].links.transfer = block.links.transfer;
    block.links = std::move(parts[p].links);
  }
}

}  // namespace

Execution run_uncontended(const TaskGraph& graph, const Topology& planned, const Topology& drawn,
                          std::span<const BackgroundFlow> background) {
  if (planned.serial() == drawn.serial()) return run(graph);
  std::vector<Block> blocks(graph.blocks().begin(), graph.blocks().end());
  std::map<int, std::vector<Block*>> divided;  // by transfer
  for (Block& block : blocks) {
    if (!block.flows || !(block.uncontended > Seconds(0.0))) continue;
    if (block.links.transfer >= 0) {
      divided[block.links.transfer].push_back(&block);
    } else {
      move_over(block, planned, drawn, background);
    }
  }
  for (const auto& [transfer, parts] : divided) {
    if (parts.size() > 1) {
      move_over(parts, planned, drawn, background);
    } else {  // the others move nothing
      move_over(*parts.front(), planned, drawn, background);
    }
  }
  return run(graph.with_blocks(std::move(blocks)));
}

RoutingDraws draw_routes(const Job& job, const ExecutorOn& execute) {
  const Cluster& cluster = job.scenario().cluster;
  // No two flows over drawn routes are alike: wherever one ends, the rates of all others change.
  const bool estimated = flows_of(job.graph()) * routes_drawn > many_flows / 10.0;
  std::vector<std::pair<Seconds, int>> drawn;
  for (int draw = 0; draw < routes_drawn; ++draw) {
    const Topology topology(cluster, draw);
    const Execution run = estimated ? run_uncontended(job.graph(), job.topology(), topology, job.scenario().background)
                                    : execute(job.graph(), topology);
    drawn.emplace_back(run.makespan, draw);
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
