#include "model/training/step_graph.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "model/base/number.hpp"
#include "model/training/sharded_order.hpp"

namespace foretrain {

namespace {

/// Whether synchronising the stage's gradients takes kernels beside transfers.
bool has_kernels(const Step::Stage& stage) {
  for (const Step::Chunk& chunk : stage.chunks) {
    for (const GradientBucket& bucket : chunk.buckets) {
      if (bucket.before + bucket.after > Seconds(0.0)) return true;
      for (const GradientBucket::Stage& part : bucket.further) {
        if (part.kernels > Seconds(0.0)) return true;
      }
    }
  }
  return false;
}

class StepGraphBuilder {
 public:
  explicit StepGraphBuilder(const Step& step);
  StepGraph run() &&;

 private:
  struct Lane {
    ResourceId compute, gradients, to_next, to_previous;
    ResourceId gradient_kernels = -1;  ///< only where compression has kernels
  };
  struct ChunkBlocks {
    BlockId forward = 0, backward = 0;
    std::vector<BlockId> bucket_segments;
    std::vector<std::array<BlockId, 2>> units;  // forward, backward
  };

  TaskId add(BlockId block, ResourceId resource, std::vector<TaskId> after, int micro_batch = -1);
  BlockId fixed_block(const std::string& name, Seconds duration, Category category, RecipePointer recipe = nullptr);
  BlockId transfer_block(int index);
  /// Adds a pass once its input is there; false when it has to wait for another stage to advance first.
  bool advance(int stage, const PipelinePass& pass);
  TaskId add_sharded(int stage, const PipelinePass& pass, const Step::Chunk& chunk, const ChunkBlocks& blocks,
                     const std::vector<TaskId>& after);
  TaskId add_synchronised_backward(int stage, const PipelinePass& pass, const Step::Chunk& chunk,
                                   const ChunkBlocks& blocks, const std::vector<TaskId>& after);
  void add_bucket(int stage, const GradientBucket& bucket, TaskId ready);
  TaskId meet(ResourceId resource, std::vector<TaskId> ends, int micro_batch);
  void add_blocks();
  [[nodiscard]] std::size_t at(int chunk, int micro) const {
    return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(step_.micro_batches) +
           static_cast<std::size_t>(micro);
  }

  const Step& step_;
  int stages_;
  int chunks_;
  TaskGraph::Builder builder_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<ChunkBlocks>> blocks_;
  std::vector<BlockId> transfer_blocks_;
  std::vector<TaskId> previous_pass_;       // by stage
  std::vector<TaskId> forward_, backward_;  // by chunk in model order and micro-batch; −1 = not yet
  std::vector<std::vector<TaskId>> gradient_tasks_;
  StepGraph result_;
};

StepGraphBuilder::StepGraphBuilder(const Step& step)
    : step_(step),
      stages_(step.stage_count()),
      chunks_(stages_ * step.interleave),
      transfer_blocks_(step.transfers.size(), -1),
      previous_pass_(step.stages.size(), -1),
      forward_(static_cast<std::size_t>(chunks_) * static_cast<std::size_t>(step.micro_batches), -1),
      backward_(forward_.size(), -1),
      gradient_tasks_(step.stages.size()),
      result_{{}, std::vector<TaskId>(step.stages.size(), -1), -1, {}} {
  for (int s = 0; s < stages_; ++s) {
    const std::string name = "stage " + std::to_string(s);
    lanes_.push_back({builder_.add_resource({name + " compute", Resource::Kind::device_stream, s}),
                      builder_.add_resource({name + " gradients", Resource::Kind::communication_stream, s}),
                      builder_.add_resource({name + " to next", Resource::Kind::communication_stream, s}),
                      builder_.add_resource({name + " to previous", Resource::Kind::communication_stream, s})});
    if (has_kernels(step.stages[static_cast<std::size_t>(s)])) {
      lanes_.back().gradient_kernels =
          builder_.add_resource({name + " gradient kernels", Resource::Kind::device_stream, s});
    }
  }
}

TaskId StepGraphBuilder::add(BlockId block, ResourceId resource, std::vector<TaskId> after, int micro_batch) {
  std::erase(after, -1);
  return builder_.add_task({block, resource, micro_batch}, after);
}

BlockId StepGraphBuilder::fixed_block(const std::string& name, Seconds duration, Category category,
                                      RecipePointer recipe) {
  return builder_.add_block({name, category, duration, {}, {}, std::move(recipe)});
}

BlockId StepGraphBuilder::transfer_block(int index) {
  BlockId& block = transfer_blocks_[static_cast<std::size_t>(index)];
  if (block < 0) {
    const Step::Transfer& transfer = step_.transfers[static_cast<std::size_t>(index)];
    block = builder_.add_block(
        {transfer.name, Category::communication, transfer.uncontended, transfer.lowered, {}, transfer.recipe});
  }
  return block;
}

void StepGraphBuilder::add_blocks() {
  for (const Step::Stage& stage : step_.stages) {
    std::vector<ChunkBlocks> of_stage;
    for (const Step::Chunk& chunk : stage.chunks) {
      ChunkBlocks blocks;
      if (chunk.units.empty()) {
        blocks.forward = fixed_block("forward", chunk.forward.total(), Category::compute, chunk.forward_recipe);
        blocks.backward = fixed_block("backward", chunk.backward.total(), Category::compute, chunk.backward_recipe);
      }
      for (const GradientBucket& bucket : chunk.buckets) {
        blocks.bucket_segments.push_back(
            fixed_block("backward", bucket.backward.total(), Category::compute, bucket.backward_recipe));
      }
      for (const ShardedUnit& unit : chunk.units) {
        blocks.units.push_back({fixed_block("forward", unit.forward.total(), Category::compute),
                                fixed_block("backward", unit.backward.total(), Category::compute)});
      }
      of_stage.push_back(std::move(blocks));
    }
    blocks_.push_back(std::move(of_stage));
  }
}

TaskId StepGraphBuilder::add_sharded(int stage, const PipelinePass& pass, const Step::Chunk& chunk,
                                     const ChunkBlocks& blocks, const std::vector<TaskId>& after) {
  const Lane& lane = lanes_[static_cast<std::size_t>(stage)];
  std::vector<TaskId> tasks;
  std::vector<TaskId> ends;
  for (const ShardedUnit::Pass& part : sharded_order(chunk.units, pass.backward)) {
    const ShardedUnit& unit = chunk.units[static_cast<std::size_t>(part.unit)];
    std::vector<TaskId> needs = after;
    for (const int before : part.after) needs.push_back(tasks[static_cast<std::size_t>(before)]);
    const bool compute = part.kind == ShardedUnit::Pass::Kind::compute;
    BlockId block = 0;
    if (compute) {
      block = blocks.units[static_cast<std::size_t>(part.unit)][pass.backward ? 1 : 0];
    } else if (part.kind == ShardedUnit::Pass::Kind::scatter) {
      block = transfer_block(unit.scatter);
    } else {
      block = transfer_block(pass.backward ? unit.gather_backward : unit.gather);
    }
    tasks.push_back(add(block, compute ? lane.compute : lane.gradients, std::move(needs), pass.micro_batch));
    if (part.kind != ShardedUnit::Pass::Kind::gather) ends.push_back(tasks.back());
  }
  return meet(lane.compute, std::move(ends), pass.micro_batch);
}

/// The end of a pass, where its streams wait for each other.
TaskId StepGraphBuilder::meet(ResourceId resource, std::vector<TaskId> ends, int micro_batch) {
  static const std::string name = "pass done";
  return add(fixed_block(name, Seconds(0.0), Category::compute), resource, std::move(ends), micro_batch);
}

/// A backward pass whose gradients are synchronised bucket by bucket, beside it or after it. The last one of a step
/// ends when its own work is done; the optimizer waits for the gradients. An earlier one waits for them itself.
TaskId StepGraphBuilder::add_synchronised_backward(int stage, const PipelinePass& pass, const Step::Chunk& chunk,
                                                   const ChunkBlocks& blocks, const std::vector<TaskId>& after) {
  const Lane& lane = lanes_[static_cast<std::size_t>(stage)];
  std::vector<TaskId>& synchronised = gradient_tasks_[static_cast<std::size_t>(stage)];
  TaskId task = -1;
  if (step_.overlap) {
    for (std::size_t b = 0; b < chunk.buckets.size(); ++b) {
      task = add(blocks.bucket_segments[b], lane.compute, b == 0 ? after : std::vector<TaskId>{task}, pass.micro_batch);
      add_bucket(stage, chunk.buckets[b], task);
    }
  } else {
    task = add(blocks.backward, lane.compute, after, pass.micro_batch);
    for (const GradientBucket& bucket : chunk.buckets) add_bucket(stage, bucket, task);
  }
  if (pass.micro_batch == step_.micro_batches - 1) return task;
  synchronised.push_back(task);
  return meet(lane.compute, std::exchange(synchronised, {}), pass.micro_batch);
}

/// A bucket's kernels and transfers, one after the other.
void StepGraphBuilder::add_bucket(int stage, const GradientBucket& bucket, TaskId ready) {
  if (bucket.transfer < 0) return;
  const Lane& lane = lanes_[static_cast<std::size_t>(stage)];
  TaskId last = ready;
  const auto kernels = [&](Seconds time, const RecipePointer& recipe) {
    if (!(time > Seconds(0.0))) return;
    const BlockId block = fixed_block("gradient compression", time, Category::compute, recipe);
    last = add(block, lane.gradient_kernels, {last});
  };
  kernels(bucket.before, bucket.before_recipe);
  last = add(transfer_block(bucket.transfer), lane.gradients, {last});
  for (const GradientBucket::Stage& part : bucket.further) {
    kernels(part.kernels, part.recipe);
    last = add(transfer_block(part.transfer), lane.gradients, {last});
  }
  kernels(bucket.after, bucket.after_recipe);
  gradient_tasks_[static_cast<std::size_t>(stage)].push_back(last);
}

bool StepGraphBuilder::advance(int stage, const PipelinePass& pass) {
  const auto s = static_cast<std::size_t>(stage);
  const int chunk_index = pass.chunk * stages_ + stage;
  std::vector<TaskId> after;
  if (pass.backward) {
    after.push_back(forward_[at(chunk_index, pass.micro_batch)]);
    if (chunk_index + 1 < chunks_) {
      const TaskId arrival = backward_[at(chunk_index + 1, pass.micro_batch)];
      if (arrival < 0) return false;
      after.push_back(arrival);
    }
  } else if (chunk_index > 0) {
    const TaskId arrival = forward_[at(chunk_index - 1, pass.micro_batch)];
    if (arrival < 0) return false;
    after.push_back(arrival);
  }

  const Step::Chunk& chunk = step_.stages[s].chunks[static_cast<std::size_t>(pass.chunk)];
  const ChunkBlocks& blocks = blocks_[s][static_cast<std::size_t>(pass.chunk)];
  const bool last_micro_batch = pass.micro_batch == step_.micro_batches - 1;
  TaskId done = -1;
  if (!chunk.units.empty()) {
    after.push_back(previous_pass_[s]);
    done = add_sharded(stage, pass, chunk, blocks, after);
  } else if (pass.backward && (last_micro_batch ? step_.overlap : step_.every_micro_batch)) {
    done = add_synchronised_backward(stage, pass, chunk, blocks, after);
  } else {
    const BlockId block = pass.backward ? blocks.backward : blocks.forward;
    done = add(block, lanes_[s].compute, after, pass.micro_batch);
  }
  previous_pass_[s] = done;
  if (pass.backward) result_.last_backward[s] = done;

  // The neighbour sees the pass once its activations (or their gradients) have arrived there.
  const int target = pass.backward ? chunk_index - 1 : chunk_index + 1;
  TaskId arrived = done;
  if (stages_ > 1 && target >= 0 && target < chunks_) {
    const BlockId hop = transfer_block(step_.hop(stage, target % stages_, pass.backward));
    if (std::ranges::find(result_.hops, hop) == result_.hops.end()) result_.hops.push_back(hop);
    arrived = add(hop, pass.backward ? lanes_[s].to_previous : lanes_[s].to_next, {done}, pass.micro_batch);
  }
  (pass.backward ? backward_ : forward_)[at(chunk_index, pass.micro_batch)] = arrived;
  return true;
}

StepGraph StepGraphBuilder::run() && {
  add_blocks();
  std::vector<std::vector<PipelinePass>> order;
  std::size_t left = 0;
  for (int s = 0; s < stages_; ++s) {
    order.push_back(pipeline_order(stages_, s, step_.interleave, step_.micro_batches));
    left += order.back().size();
  }
  std::vector<std::size_t> position(order.size(), 0);
  while (left > 0) {
    for (std::size_t s = 0; s < order.size(); ++s) {
      while (position[s] < order[s].size() && advance(static_cast<int>(s), order[s][position[s]])) {
        ++position[s];
        --left;
      }
    }
  }

  std::vector<TaskId> all_done;
  for (std::size_t s = 0; s < step_.stages.size(); ++s) {
    if (!step_.overlap) {
      for (std::size_t k = step_.stages[s].chunks.size(); k-- > 0;) {
        for (const GradientBucket& bucket : step_.stages[s].chunks[k].buckets) {
          add_bucket(static_cast<int>(s), bucket, result_.last_backward[s]);
        }
      }
    }
    all_done.push_back(result_.last_backward[s]);
    all_done.insert(all_done.end(), gradient_tasks_[s].begin(), gradient_tasks_[s].end());
  }
  if (step_.slowest_replica > Seconds(0.0)) {
    const BlockId waiting =
        fixed_block("waiting for the slowest replica", step_.slowest_replica, Category::communication);
    all_done = {add(waiting, lanes_.front().compute, std::move(all_done))};
  }
  result_.synchronised =
      add(fixed_block("gradient norm", step_.gradient_norm, Category::communication, step_.norm_recipe),
          lanes_.front().compute, std::move(all_done));
  for (std::size_t s = 0; s < step_.stages.size(); ++s) {
    const Step::Stage& stage = step_.stages[s];
    const BlockId optimizer =
        fixed_block("optimizer", stage.optimizer.total(), Category::optimizer, stage.optimizer_recipe);
    const TaskId update = add(optimizer, lanes_[s].compute, {result_.synchronised});
    if (stage.parameter_gather >= 0) add(transfer_block(stage.parameter_gather), lanes_[s].gradients, {update});
  }
  result_.graph = std::move(builder_).build();
  return std::move(result_);
}

}  // namespace

StepGraph step_graph(const Step& step) { return StepGraphBuilder(step).run(); }

StepGraph::Times times_of(const StepGraph& step, const Execution& execution) {
  const auto backward_done = [&](const Execution& of) {
    Seconds done;
    for (const TaskId task : step.last_backward) done = std::max(done, of.finish[at_index(task)]);
    return done;
  };
  StepGraph::Times times;
  times.backward_done = backward_done(execution);
  times.without_transfers = times.backward_done;
  if (!step.hops.empty()) times.without_transfers = backward_done(run(step.graph, step.hops));
  times.synchronised = execution.start[at_index(step.synchronised)];
  times.end = execution.makespan;
  return times;
}

}  // namespace foretrain
