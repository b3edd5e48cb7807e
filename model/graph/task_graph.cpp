#include "model/graph/task_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/base/error.hpp"

namespace foretrain {

TaskGraph TaskGraph::with_blocks(std::vector<Block> blocks) const {
  if (blocks.size() != blocks_.size()) {
    throw InternalError(fmt::format("{} blocks for a graph of {}", blocks.size(), blocks_.size()));
  }
  return {std::move(blocks), structure_};
}

BlockId TaskGraph::Builder::add_block(Block block) {
  blocks_.push_back(std::move(block));
  return static_cast<BlockId>(blocks_.size() - 1);
}

ResourceId TaskGraph::Builder::add_resource(Resource resource) {
  if (resource.servers < 1 || (resource.servers > 1 && resource.order != Resource::Order::urgent)) {
    throw InternalError(fmt::format("resource {}: {} tasks at a time", resource.name, resource.servers));
  }
  structure_.resources.push_back(std::move(resource));
  return static_cast<ResourceId>(structure_.resources.size() - 1);
}

TaskId TaskGraph::Builder::add_task(Task task, std::span<const TaskId> after) {
  const auto id = static_cast<TaskId>(structure_.tasks.size());
  if (task.block < 0 || std::cmp_greater_equal(task.block, blocks_.size())) {
    throw InternalError(fmt::format("task {}: there is no block {}", id, task.block));
  }
  if (task.resource < 0 || std::cmp_greater_equal(task.resource, structure_.resources.size())) {
    throw InternalError(fmt::format("task {}: there is no resource {}", id, task.resource));
  }
  for (const TaskId before : after) {
    if (before < 0 || before >= id) {
      throw InternalError(fmt::format("task {}: it cannot wait for task {}, which is not added yet", id, before));
    }
  }
  structure_.tasks.push_back(task);
  std::vector<TaskId>& all = structure_.predecessors;
  const auto own = all.insert(all.end(), after.begin(), after.end());
  std::sort(own, all.end());
  all.erase(std::unique(own, all.end()), all.end());
  structure_.first_predecessor.push_back(all.size());
  return id;
}

TaskGraph TaskGraph::Builder::build() && {
  std::vector<std::size_t>& first = structure_.first_successor;
  first.resize(structure_.tasks.size() + 1);
  for (const TaskId before : structure_.predecessors) ++first[at_index(before) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  structure_.successors.resize(structure_.predecessors.size());
  std::vector<std::size_t> next = first;
  for (std::size_t task = 0, edge = 0; task < structure_.tasks.size(); ++task) {
    for (; edge < structure_.first_predecessor[task + 1]; ++edge) {
      structure_.successors[next[at_index(structure_.predecessors[edge])]++] = static_cast<TaskId>(task);
    }
  }
  return {std::move(blocks_), std::make_shared<const Structure>(std::move(structure_))};
}

double flows_of(const TaskGraph& graph) {
  std::vector<double> of_block;
  for (const Block& block : graph.blocks()) {
    double& count = of_block.emplace_back(0.0);
    if (!block.flows) continue;
    for (const LoweredCollective::Phase& phase : block.flows->phases) count += number(phase.flows.size());
  }
  double count = 0.0;
  for (const Task& task : graph.tasks()) count += of_block[at_index(task.block)];
  return count;
}

TaskGraph graph_of_one(Block block, Resource resource) {
  TaskGraph::Builder builder;
  const BlockId only = builder.add_block(std::move(block));
  builder.add_task({only, builder.add_resource(std::move(resource))});
  return std::move(builder).build();
}

}  // namespace foretrain
