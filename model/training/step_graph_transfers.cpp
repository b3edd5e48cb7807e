// What is sent: collectives of gradients and inside layers, messages between stages.
#include "model/training/step_graph_builder.hpp"

namespace foretrain {

/// Collectives of the same ranks follow each other, those of gradients beside those inside layers.
ResourceId StepGraphBuilder::stream_of(const std::vector<int>& lanes, bool of_gradients) {
  if (of_gradients && lanes.size() == 1) return streams_[at_index(lanes.front())].gradients;
  const auto [known, is_new] = shared_streams_.try_emplace({lanes, of_gradients}, -1);
  if (is_new) {
    const Step::Lane& lane = step_.lanes[at_index(lanes.front())];
    std::string name = "stage " + std::to_string(lane.stage);
    if (lanes_in(lane.stage) > 1) {
      name += ", rank";
      for (const int other : lanes) name += " " + std::to_string(step_.lanes[at_index(other)].first_rank);
    }
    known->second = builder_.add_resource(
        {name + (of_gradients ? " gradients" : " inside layers"), Resource::Kind::communication_stream, lanes.front()});
  }
  return known->second;
}

BlockId StepGraphBuilder::transfer_block(int transfer, std::size_t part) {
  BlockId& block = transfer_blocks_[at_index(transfer)][part];
  if (block < 0) {
    const Step::Transfer& of = step_.transfers[at_index(transfer)];
    block = builder_.add_block(
        {of.name, Category::communication, of.parts[part].uncontended, of.parts[part].lowered, {}, of.recipe});
  }
  return block;
}

StepGraphBuilder::PerLane StepGraphBuilder::add_transfer(int stage, int transfer, bool of_gradients,
                                                         const AfterPerLane& after, int micro_batch) {
  PerLane tasks(lanes_in(stage), -1);
  const std::vector<Step::Transfer::Part>& parts = step_.transfers[at_index(transfer)].parts;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<TaskId> needs;
    for (const int lane : parts[p].lanes) {
      const std::vector<TaskId>& own = after[at_index(lane - first_lane(stage))];
      needs.insert(needs.end(), own.begin(), own.end());
    }
    const ResourceId stream = stream_of(parts[p].lanes, of_gradients);
    // A lane's collectives of gradients follow each other, whoever takes part in them.
    for (const int lane : parts[p].lanes) {
      const auto [last, last_stream] = last_gradients_[at_index(lane)];
      if (of_gradients && last_stream != stream) needs.push_back(last);
    }
    const TaskId task = add(transfer_block(transfer, p), stream, std::move(needs), micro_batch);
    for (const int lane : parts[p].lanes) {
      if (of_gradients) last_gradients_[at_index(lane)] = {task, stream};
    }
    result_.transfers.push_back({task, transfer, p});
    for (const int lane : parts[p].lanes) tasks[at_index(lane - first_lane(stage))] = task;
  }
  return tasks;
}

/// A bucket's kernels and transfers, one after the other.
void StepGraphBuilder::add_bucket(int stage, int chunk, std::size_t bucket, const PerLane& ready) {
  const auto bucket_of = [&](std::size_t i) -> const GradientBucket& {
    return step_.lanes[lane_in(stage, i)].chunks[at_index(chunk)].buckets[bucket];
  };
  const GradientBucket& first = bucket_of(0);
  if (first.transfer < 0) return;
  PerLane last = ready;
  const auto kernels = [&](std::size_t i, Seconds time, const RecipePointer& recipe) {
    if (!(time > Seconds(0.0))) return;
    const BlockId block = fixed_block("gradient compression", time, Category::compute, recipe);
    last[i] = add(block, streams_[lane_in(stage, i)].gradient_kernels, {last[i]});
  };
  const auto transfer = [&](int index) {
    AfterPerLane after;
    for (const TaskId task : last) after.push_back({task});
    last = add_transfer(stage, index, true, after);
  };
  for (std::size_t i = 0; i < last.size(); ++i) kernels(i, bucket_of(i).before, bucket_of(i).before_recipe);
  transfer(first.transfer);
  for (std::size_t k = 0; k < first.further.size(); ++k) {
    for (std::size_t i = 0; i < last.size(); ++i) {
      kernels(i, bucket_of(i).further[k].kernels, bucket_of(i).further[k].recipe);
    }
    transfer(first.further[k].transfer);
  }
  for (std::size_t i = 0; i < last.size(); ++i) {
    kernels(i, bucket_of(i).after, bucket_of(i).after_recipe);
    gradient_tasks_[lane_in(stage, i)].push_back(last[i]);
  }
}

/// The neighbour sees the pass once its activations (or their gradients) have arrived there.
void StepGraphBuilder::send(int stage, const PipelinePass& pass, const PerLane& done) {
  const int chunk_index = pass.chunk * stages_ + stage;
  const int target = pass.backward ? chunk_index - 1 : chunk_index + 1;
  if (target < 0 || target >= chunks_) return;
  std::vector<std::vector<TaskId>>& input = pass.backward ? gradient_input_ : input_;
  const std::size_t arrival = at(target / stages_, pass.micro_batch);
  if (stages_ == 1) {
    for (std::size_t i = 0; i < done.size(); ++i) input[lane_in(stage, i)][arrival] = done[i];
    return;
  }
  const int target_stage = target % stages_;
  const int hop = step_.hop(stage, target_stage, pass.backward);
  const std::vector<Step::Transfer::Part>& parts = step_.transfers[at_index(hop)].parts;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<TaskId> sent;
    ResourceId stream = -1;
    for (const int lane : parts[p].lanes) {
      if (step_.lanes[at_index(lane)].stage != stage) continue;
      sent.push_back(done[at_index(lane - first_lane(stage))]);
      const Streams& streams = streams_[at_index(lane)];
      if (stream < 0) stream = pass.backward ? streams.to_previous : streams.to_next;
    }
    const TaskId arrived = add(transfer_block(hop, p), stream, std::move(sent), pass.micro_batch);
    result_.transfers.push_back({arrived, hop, p});
    for (const int lane : parts[p].lanes) {
      if (step_.lanes[at_index(lane)].stage == target_stage) input[at_index(lane)][arrival] = arrived;
    }
  }
}

}  // namespace foretrain
