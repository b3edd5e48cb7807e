// The task graph: what has to be done, on which resource, after what. Built once from blocks; executors read it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/base/number.hpp"
#include "model/collectives/collective.hpp"
#include "model/collectives/link_share.hpp"
#include "model/cost/device_share.hpp"

namespace foretrain {

using BlockId = std::int32_t;
using ResourceId = std::int32_t;
using TaskId = std::int32_t;

struct Recipe;  // recipe.hpp

/// A task's part of the step's breakdown.
enum class Category : std::uint8_t { compute, communication, optimizer, host, data };

/// Something that works on one task at a time (a CUDA stream, a copy engine, a host thread), or on several (cores).
struct Resource {
  /// In which order a resource takes its tasks: that in which they were added (a CUDA stream), or whichever is ready
  /// and most urgent (Task::priority; among equals the one that was ready first), as a sender's queue of messages. A
  /// resource of order at_once has no queue: each of its tasks starts when it is ready (a delay).
  enum class Order : std::uint8_t { added, urgent, at_once };

  enum class Kind : std::uint8_t {
    device_stream,
    communication_stream,
    copy_engine,
    host_thread,
    loader,
    disk,
    launch_path  ///< between a host thread and a device: what it carries is on its way, not at work
  };

  std::string name;
  Kind kind = Kind::device_stream;
  int rank_class = 0;  ///< index of the group of symmetric ranks that it stands for (pipeline stage)
  Order order = Order::added;
  /// Resources with the same number from 0 up are streams of one device: tasks that run on them at the same time slow
  /// each other down by Block::share (see SharedDevice). -1: a stream that has its device to itself. Not with at_once.
  int device = -1;
  int servers = 1;  ///< tasks at a time; more than one needs Order::urgent
};

/// Parts of a block's time beside its kernels: moments in which these rest, and hidden work beside them. Merged
/// collectives are no tasks of their own; code that sums or draws traffic finds them here.
struct Inside {
  Seconds exposed, hidden;                ///< collectives inside layers
  Seconds exposed_copies, hidden_copies;  ///< of offloading
  Seconds host;                           ///< by which dispatching outlasts the kernels

  Inside& operator+=(const Inside& other) {
    exposed += other.exposed;
    hidden += other.hidden;
    exposed_copies += other.exposed_copies;
    hidden_copies += other.hidden_copies;
    host += other.host;
    return *this;
  }
  bool operator==(const Inside&) const = default;
  friend Inside operator*(const Inside& i, double n) {
    return {i.exposed * n, i.hidden * n, i.exposed_copies * n, i.hidden_copies * n, i.host * n};
  }
};

/// Names in results, for tasks of their own and collectives inside tasks.
inline constexpr const char* inside_layers = "collectives inside layers";
inline constexpr const char* copies_of_offloading = "copies of offloading";

/// A piece of work built and costed once and referred to by many tasks: one layer's forward, one bucket's collective.
struct Block {
  std::string name;
  Category category = Category::compute;
  Seconds uncontended;                             ///< duration while no other task's data move
  std::optional<LoweredCollective> flows = {};     ///< data that it moves over the topology, and that may meet others'
  DeviceShare share = {0.0, 0.0};                  ///< on streams that share a device; of blocks without flows
  std::shared_ptr<const Recipe> recipe = nullptr;  ///< its work, if requested
  Inside inside = {};                              ///< parts of `uncontended`, and what they hide
  LinkShare links = {};                            ///< with blocks beside it; of those with flows, in an estimate
  const char* kind = nullptr;                      ///< of several of one name: what this moves
};

struct Task {
  BlockId block = 0;
  ResourceId resource = 0;
  std::int32_t micro_batch = -1;  ///< for timelines; -1 where it has none
  std::int32_t priority = 0;      ///< on resources of Resource::Order::urgent: the least goes first
};

/// Immutable. Tasks are numbered in the order they were added.
class TaskGraph {
 public:
  class Builder;

  /// No tasks.
  TaskGraph() : structure_(std::make_shared<const Structure>()) {}

  [[nodiscard]] std::span<const Block> blocks() const { return blocks_; }
  [[nodiscard]] std::span<const Resource> resources() const { return structure_->resources; }
  [[nodiscard]] std::span<const Task> tasks() const { return structure_->tasks; }
  [[nodiscard]] const Block& block_of(TaskId task) const { return blocks_[at_index(tasks()[at_index(task)].block)]; }
  [[nodiscard]] const Resource& resource_of(TaskId task) const {
    return resources()[at_index(tasks()[at_index(task)].resource)];
  }
  /// Tasks that wait for `task` (not counting the next one on the same resource).
  [[nodiscard]] std::span<const TaskId> successors(TaskId task) const {
    const std::size_t* first = &structure_->first_successor[at_index(task)];
    return std::span(structure_->successors).subspan(first[0], first[1] - first[0]);
  }
  /// Those that `task` waits for (not counting the one before on the same resource), ascending, each once.
  [[nodiscard]] std::span<const TaskId> predecessors(TaskId task) const {
    const std::size_t* first = &structure_->first_predecessor[at_index(task)];
    return std::span(structure_->predecessors).subspan(first[0], first[1] - first[0]);
  }

  /// The same tasks on the same resources, which it shares with this graph, but with other blocks: as many. Throws
  /// InternalError.
  [[nodiscard]] TaskGraph with_blocks(std::vector<Block> blocks) const;

 private:
  /// All but the blocks.
  struct Structure {
    std::vector<Resource> resources;
    std::vector<Task> tasks;
    std::vector<std::size_t> first_predecessor{0};  ///< of each task in `predecessors`, and their number
    std::vector<TaskId> predecessors;
    std::vector<std::size_t> first_successor;  ///< likewise
    std::vector<TaskId> successors;
  };
  TaskGraph(std::vector<Block> blocks, std::shared_ptr<const Structure> structure)
      : blocks_(std::move(blocks)), structure_(std::move(structure)) {}
  std::vector<Block> blocks_;
  std::shared_ptr<const Structure> structure_;
};

class TaskGraph::Builder {
 public:
  BlockId add_block(Block block);
  ResourceId add_resource(Resource resource);
  /// Dependencies must be tasks already added; a task never waits for a later one, so graphs are acyclic by
  /// construction.
  TaskId add_task(Task task, std::span<const TaskId> after = {});
  TaskGraph build() &&;

 private:
  std::vector<Block> blocks_;
  Structure structure_;
};

/// Number of flows of all its tasks together: a measure of how long simulating them takes that is the same on every
/// machine.
double flows_of(const TaskGraph& graph);
/// With more of them dozens of simulations take minutes.
inline constexpr double many_flows = 1e7;

TaskGraph graph_of_one(Block block, Resource resource);

}  // namespace foretrain
