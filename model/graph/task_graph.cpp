#include "model/graph/task_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

using SuccessorGraph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                          boost::no_property, TaskId, std::int32_t>;

}  // namespace

struct TaskGraph::Structure {
  std::vector<Resource> resources;
  std::vector<Task> tasks;
  std::vector<std::int32_t> predecessor_counts;
  SuccessorGraph successors;
};

TaskGraph::TaskGraph(std::vector<Block> blocks, std::shared_ptr<const Structure> structure)
    : blocks_(std::move(blocks)), structure_(std::move(structure)) {}
TaskGraph::TaskGraph() : structure_(std::make_shared<const Structure>()) {}
TaskGraph::TaskGraph(TaskGraph&&) noexcept = default;
TaskGraph& TaskGraph::operator=(TaskGraph&&) noexcept = default;
TaskGraph::~TaskGraph() = default;

std::span<const Block> TaskGraph::blocks() const { return blocks_; }
std::span<const Resource> TaskGraph::resources() const { return structure_->resources; }
std::span<const Task> TaskGraph::tasks() const { return structure_->tasks; }
std::span<const std::int32_t> TaskGraph::predecessor_counts() const { return structure_->predecessor_counts; }

const Block& TaskGraph::block_of(TaskId task) const {
  return blocks_[static_cast<std::size_t>(structure_->tasks[static_cast<std::size_t>(task)].block)];
}

const Resource& TaskGraph::resource_of(TaskId task) const {
  return structure_->resources[static_cast<std::size_t>(structure_->tasks[static_cast<std::size_t>(task)].resource)];
}

std::span<const TaskId> TaskGraph::successors(TaskId task) const {
  const auto [first, last] = boost::adjacent_vertices(task, structure_->successors);
  return {first, last};
}

TaskGraph TaskGraph::with_blocks(std::vector<Block> blocks) const {
  if (blocks.size() != blocks_.size()) {
    throw InternalError(fmt::format("{} blocks for a graph of {}", blocks.size(), blocks_.size()));
  }
  return {std::move(blocks), structure_};
}

TaskGraph::Builder::Builder() : structure_(std::make_shared<Structure>()) {}
TaskGraph::Builder::~Builder() = default;

BlockId TaskGraph::Builder::add_block(Block block) {
  blocks_.push_back(std::move(block));
  return static_cast<BlockId>(blocks_.size() - 1);
}

ResourceId TaskGraph::Builder::add_resource(Resource resource) {
  if (resource.servers < 1 || (resource.servers > 1 && resource.order != Resource::Order::urgent)) {
    throw InternalError(fmt::format("resource {}: {} tasks at a time", resource.name, resource.servers));
  }
  structure_->resources.push_back(std::move(resource));
  return static_cast<ResourceId>(structure_->resources.size() - 1);
}

TaskId TaskGraph::Builder::add_task(Task task, std::span<const TaskId> after) {
  const auto id = static_cast<TaskId>(structure_->tasks.size());
  if (task.block < 0 || std::cmp_greater_equal(task.block, blocks_.size())) {
    throw InternalError(fmt::format("task {}: there is no block {}", id, task.block));
  }
  if (task.resource < 0 || std::cmp_greater_equal(task.resource, structure_->resources.size())) {
    throw InternalError(fmt::format("task {}: there is no resource {}", id, task.resource));
  }
  for (const TaskId before : after) {
    if (before < 0 || before >= id) {
      throw InternalError(fmt::format("task {}: it cannot wait for task {}, which is not added yet", id, before));
    }
  }
  structure_->tasks.push_back(task);
  structure_->predecessor_counts.push_back(static_cast<std::int32_t>(after.size()));
  for (const TaskId before : after) edges_.emplace_back(before, id);
  return id;
}

TaskGraph TaskGraph::Builder::build() && {
  structure_->successors = SuccessorGraph(boost::edges_are_unsorted_multi_pass, edges_.begin(), edges_.end(),
                                          static_cast<TaskId>(structure_->tasks.size()));
  return {std::move(blocks_), std::move(structure_)};
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
