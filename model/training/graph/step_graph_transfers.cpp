// What is sent: collectives of gradients and inside layers, messages between stages.
#include <algorithm>
#include <optional>
#include <utility>

#include "model/training/graph/step_graph_builder.hpp"

namespace foretrain {

/// Collectives of the same ranks follow each other, those of gradients beside those inside layers.
ResourceId StepGraphBuilder::stream_of(const std::vector<int>& lanes, Traffic traffic) {
  if (traffic == Traffic::gradients && lanes.size() == 1) return streams_[at_index(lanes.front())].gradients;
  const auto [known, is_new] = shared_streams_.try_emplace({lanes, traffic}, -1);
  if (is_new) {
    const Step::Lane& lane = step_.lanes[at_index(lanes.front())];
    std::string name = "stage " + std::to_string(lane.stage);
    if (lanes_in(lane.stage) > 1) {
      name += ", rank";
      for (const int other : lanes) name += " " + std::to_string(step_.lanes[at_index(other)].first_rank);
    }
    const int last_stage = step_.lanes[at_index(lanes.back())].stage;
    if (last_stage != lane.stage) name += " and " + std::to_string(last_stage);
    name += traffic == Traffic::inside_layers ? " inside layers"
            : traffic == Traffic::gradients   ? " gradients"
                                              : " copies of shards";
    known->second = builder_.add_resource({name, Resource::Kind::communication_stream, lanes.front()});
  }
  return known->second;
}

StepGraphBuilder::PerLane StepGraphBuilder::add_transfer(int stage, int transfer, Traffic traffic,
                                                         const AfterPerLane& after, int micro_batch) {
  PerLane tasks(after.size(), -1);
  const auto index_of = [&](int lane) { return at_index(lane - first_lane(stage)); };
  const std::vector<Step::Transfer::Part>& parts = step_.transfers[at_index(transfer)].parts;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<TaskId> needs;
    for (const int lane : parts[p].lanes) {
      const std::vector<TaskId>& own = after[index_of(lane)];
      needs.insert(needs.end(), own.begin(), own.end());
    }
    const ResourceId stream = stream_of(parts[p].lanes, traffic);
    const bool in_turn = traffic == Traffic::gradients;
    // A lane's collectives of gradients follow each other, whatever their ranks.
    for (const int lane : parts[p].lanes) {
      const auto [last, last_stream] = last_gradients_[at_index(lane)];
      if (in_turn && last_stream != stream) needs.push_back(last);
    }
    const TaskId task = add(blocks_.transfers[at_index(transfer)][p], stream, std::move(needs), micro_batch);
    for (const int lane : parts[p].lanes) {
      if (in_turn) last_gradients_[at_index(lane)] = {task, stream};
    }
    result_.transfers.push_back({task, transfer, p});
    for (const int lane : parts[p].lanes) tasks[index_of(lane)] = task;
  }
  return tasks;
}

/// A bucket is synchronised when it is ready on all stages that hold its layers.
void StepGraphBuilder::add_bucket(int stage, int chunk, std::size_t bucket, const PerLane& ready) {
  if (!placement_.mirror(stage)) return synchronise(bucket, {{stage, chunk, ready}});
  const std::pair key(placement_.position(stage, chunk), bucket);
  const auto [elsewhere, is_first] = ready_elsewhere_.try_emplace(key, ReadyOn{stage, chunk, ready});
  if (is_first) return;
  std::vector<ReadyOn> both{elsewhere->second, {stage, chunk, ready}};
  ready_elsewhere_.erase(elsewhere);
  std::ranges::sort(both, {}, &ReadyOn::stage);
  synchronise(bucket, both);
}

/// A bucket's kernels and transfers, one after the other, on all lanes of these stages, which lie in this order.
void StepGraphBuilder::synchronise(std::size_t bucket, const std::vector<ReadyOn>& ready) {
  const int stage = ready.front().stage;
  const std::size_t first_lane_here = lane_in(stage, 0);
  std::vector<std::pair<std::size_t, const StepBlocks::Bucket*>> buckets;  // by lane, from the first one
  PerLane last(lane_in(ready.back().stage, lanes_in(ready.back().stage)) - first_lane_here, -1);
  for (const auto& [on, chunk, tasks] : ready) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const std::size_t lane = lane_in(on, i);
      buckets.emplace_back(lane - first_lane_here, &blocks_.chunks[lane][at_index(chunk)].buckets[bucket]);
      last[lane - first_lane_here] = tasks[i];
    }
  }
  const GradientBucket& first = step_.lanes[first_lane_here].chunks[at_index(ready.front().chunk)].buckets[bucket];
  if (first.stages.empty()) return;
  const auto kernels = [&](std::size_t i, BlockId block) {
    if (block >= 0) last[i] = add(block, streams_[first_lane_here + i].gradient_kernels, {last[i]});
  };
  const auto transfer = [&](int index) {
    AfterPerLane after;
    for (const TaskId task : last) after.push_back({task});
    last = add_transfer(stage, index, Traffic::gradients, after);
  };
  for (std::size_t k = 0; k < first.stages.size(); ++k) {
    for (const auto& [i, own] : buckets) kernels(i, own->stages[k]);
    transfer(first.stages[k].transfer);
  }
  for (const auto& [i, own] : buckets) {
    kernels(i, own->after);
    gradient_tasks_[first_lane_here + i].push_back(last[i]);
  }
}

/// The neighbour sees the pass once its activations (or their gradients) have arrived there.
void StepGraphBuilder::send(int stage, const PipelinePass& pass, const PerLane& done) {
  if (pass.kind == PassKind::weights) return;
  const auto target = pass.backward() ? placement_.previous(stage, pass.chunk) : placement_.next(stage, pass.chunk);
  if (!target) return;
  std::vector<std::vector<TaskId>>& input = pass.backward() ? gradient_input_ : input_;
  const std::size_t arrival = at(target->chunk, pass.micro_batch);
  if (target->stage == stage) {
    for (std::size_t i = 0; i < done.size(); ++i) input[lane_in(stage, i)][arrival] = done[i];
    return;
  }
  const int hop = pass.backward() ? step_.activation_gradients[step_.hop_index(target->stage, target->chunk)]
                                  : step_.activations[step_.hop_index(stage, pass.chunk)];
  const bool to_previous = pass.backward() != placement_.reversed(pass.chunk);
  const std::vector<Step::Transfer::Part>& parts = step_.transfers[at_index(hop)].parts;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<TaskId> sent;
    ResourceId stream = -1;
    for (const int lane : parts[p].lanes) {
      if (step_.lanes[at_index(lane)].stage != stage) continue;
      sent.push_back(done[at_index(lane - first_lane(stage))]);
      const Streams& streams = streams_[at_index(lane)];
      if (stream < 0) stream = to_previous ? streams.to_previous : streams.to_next;
    }
    const TaskId arrived = add(blocks_.transfers[at_index(hop)][p], stream, std::move(sent), pass.micro_batch);
    result_.transfers.push_back({arrived, hop, p});
    for (const int lane : parts[p].lanes) {
      if (step_.lanes[at_index(lane)].stage == target->stage) {
        input[at_index(lane)][arrival] = arrived;
      } else if (step_.blocking_messages) {
        awaited_[at_index(lane)].push_back(arrived);
      }
    }
  }
}

/// Blocking messages of the stage's last pass have to arrive before whatever it does next.
void StepGraphBuilder::wait_for_messages(int stage, AfterPerLane& after) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::vector<TaskId> awaited = std::exchange(awaited_[lane_in(stage, i)], {});
    after[i].insert(after[i].end(), awaited.begin(), awaited.end());
  }
}

void StepGraphBuilder::wait_for_messages(int stage, PerLane& last) {
  for (std::size_t i = 0; i < last.size(); ++i) {
    std::vector<TaskId>& awaited = awaited_[lane_in(stage, i)];
    if (awaited.empty()) continue;
    awaited.push_back(last[i]);
    last[i] = meet(streams_[lane_in(stage, i)].compute, std::exchange(awaited, {}), -1);
  }
}

}  // namespace foretrain
