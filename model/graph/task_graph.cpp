#include "model/graph/task_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <stdexcept>
#include <utility>

namespace foretrain {

namespace {

using SuccessorGraph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                          boost::no_property, TaskId, std::int32_t>;

}  // namespace

struct TaskGraph::Impl {
  std::vector<Block> blocks;
  std::vector<Resource> resources;
  std::vector<Task> tasks;
  std::vector<std::int32_t> predecessor_counts;
  std::vector<std::pair<TaskId, TaskId>> edges;  ///< (before, after); emptied once `successors` holds them
  SuccessorGraph successors;
};

TaskGraph::TaskGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TaskGraph::TaskGraph() : impl_(std::make_unique<Impl>()) {}
TaskGraph::TaskGraph(TaskGraph&&) noexcept = default;
TaskGraph& TaskGraph::operator=(TaskGraph&&) noexcept = default;
TaskGraph::~TaskGraph() = default;

std::span<const Block> TaskGraph::blocks() const { return impl_->blocks; }
std::span<const Resource> TaskGraph::resources() const { return impl_->resources; }
std::span<const Task> TaskGraph::tasks() const { return impl_->tasks; }
std::span<const std::int32_t> TaskGraph::predecessor_counts() const { return impl_->predecessor_counts; }

const Block& TaskGraph::block_of(TaskId task) const {
  return impl_->blocks[static_cast<std::size_t>(impl_->tasks[static_cast<std::size_t>(task)].block)];
}

const Resource& TaskGraph::resource_of(TaskId task) const {
  return impl_->resources[static_cast<std::size_t>(impl_->tasks[static_cast<std::size_t>(task)].resource)];
}

std::span<const TaskId> TaskGraph::successors(TaskId task) const {
  const auto [first, last] = boost::adjacent_vertices(task, impl_->successors);
  return {first, last};
}

TaskGraph::Builder::Builder() : impl_(std::make_unique<Impl>()) {}
TaskGraph::Builder::~Builder() = default;

BlockId TaskGraph::Builder::add_block(Block block) {
  impl_->blocks.push_back(std::move(block));
  return static_cast<BlockId>(impl_->blocks.size() - 1);
}

ResourceId TaskGraph::Builder::add_resource(Resource resource) {
  if (resource.servers < 1 || (resource.servers > 1 && resource.order != Resource::Order::urgent)) {
    throw std::invalid_argument(fmt::format("resource {}: {} tasks at a time", resource.name, resource.servers));
  }
  impl_->resources.push_back(std::move(resource));
  return static_cast<ResourceId>(impl_->resources.size() - 1);
}

TaskId TaskGraph::Builder::add_task(Task task, std::span<const TaskId> after) {
  const auto id = static_cast<TaskId>(impl_->tasks.size());
  if (task.block < 0 || std::cmp_greater_equal(task.block, impl_->blocks.size())) {
    throw std::invalid_argument(fmt::format("task {}: there is no block {}", id, task.block));
  }
  if (task.resource < 0 || std::cmp_greater_equal(task.resource, impl_->resources.size())) {
    throw std::invalid_argument(fmt::format("task {}: there is no resource {}", id, task.resource));
  }
  for (const TaskId before : after) {
    if (before < 0 || before >= id) {
      throw std::invalid_argument(
          fmt::format("task {}: it cannot wait for task {}, which is not added yet", id, before));
    }
  }
  impl_->tasks.push_back(task);
  impl_->predecessor_counts.push_back(static_cast<std::int32_t>(after.size()));
  for (const TaskId before : after) impl_->edges.emplace_back(before, id);
  return id;
}

TaskGraph TaskGraph::Builder::build() && {
  impl_->successors = SuccessorGraph(boost::edges_are_unsorted_multi_pass, impl_->edges.begin(), impl_->edges.end(),
                                     static_cast<TaskId>(impl_->tasks.size()));
  impl_->edges = {};
  return TaskGraph(std::move(impl_));
}

TaskGraph graph_of_one(Block block, Resource resource) {
  TaskGraph::Builder builder;
  const BlockId only = builder.add_block(std::move(block));
  builder.add_task({only, builder.add_resource(std::move(resource))});
  return std::move(builder).build();
}

}  // namespace foretrain
