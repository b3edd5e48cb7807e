// Transfers: collectives of gradients and inside layers, messages between stages.
#include <algorithm>
#include <utility>

#include "model/training/graph/step_graph_builder.hpp"

namespace foretrain {

/// Collectives of the same ranks follow each other, those of gradients beside those inside layers.
ResourceId StepGraphBuilder::stream_of(const std::vector<int>& rank_classes, Traffic traffic) {
  if (traffic == Traffic::gradients && rank_classes.size() == 1)
    return streams_[at_index(rank_classes.front())].gradients;
  const auto [known, is_new] = shared_streams_.try_emplace({rank_classes, traffic}, -1);
  if (is_new) {
    const Step::RankClass& rank_class = step_.rank_classes[at_index(rank_classes.front())];
    std::string name = "stage " + std::to_string(rank_class.stage);
    if (classes_in(rank_class.stage) > 1) {
      name += ", rank";
      for (const int other : rank_classes) name += " " + std::to_string(step_.rank_classes[at_index(other)].first_rank);
    }
    const int last_stage = step_.rank_classes[at_index(rank_classes.back())].stage;
    if (last_stage != rank_class.stage) name += " and " + std::to_string(last_stage);
    name += traffic == Traffic::inside_layers ? " inside layers"
            : traffic == Traffic::gradients   ? " gradients"
                                              : " copies of shards";
    known->second = builder_.add_resource({name, Resource::Kind::communication_stream, rank_classes.front()});
  }
  return known->second;
}

StepGraphBuilder::PerClass StepGraphBuilder::add_transfer(int stage, int transfer, Traffic traffic,
                                                          const AfterPerClass& after, int micro_batch) {
  PerClass tasks(after.size(), -1);
  const auto index_of = [&](int rank_class) { return at_index(rank_class - first_class(stage)); };
  const std::vector<Step::Transfer::Part>& parts = step_.transfers[at_index(transfer)].parts;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<TaskId> needs;
    for (const int rank_class : parts[p].rank_classes) {
      const std::vector<TaskId>& own = after[index_of(rank_class)];
      needs.insert(needs.end(), own.begin(), own.end());
    }
    const ResourceId stream = stream_of(parts[p].rank_classes, traffic);
    const bool in_turn = traffic == Traffic::gradients;
    // A rank class's collectives of gradients follow each other, whatever their ranks.
    for (const int rank_class : parts[p].rank_classes) {
      const auto [last, last_stream] = last_gradients_[at_index(rank_class)];
      if (in_turn && last_stream != stream) needs.push_back(last);
    }
    const TaskId task = add(blocks_.transfers[at_index(transfer)][p], stream, std::move(needs), micro_batch);
    for (const int rank_class : parts[p].rank_classes) {
      if (in_turn) last_gradients_[at_index(rank_class)] = {task, stream};
    }
    result_.transfers.push_back({task, transfer, p});
    for (const int rank_class : parts[p].rank_classes) tasks[index_of(rank_class)] = task;
  }
  return tasks;
}

/// A bucket is synchronised when it is ready on all stages that hold its layers.
void StepGraphBuilder::add_bucket(int stage, int chunk, std::size_t bucket, const PerClass& ready) {
  if (!placement_.mirror(stage)) return synchronise(bucket, {{stage, chunk, ready}});
  const std::pair key(placement_.position(stage, chunk), bucket);
  const auto [elsewhere, is_first] = ready_elsewhere_.try_emplace(key, ReadyOn{stage, chunk, ready});
  if (is_first) return;
  std::vector<ReadyOn> both{elsewhere->second, {stage, chunk, ready}};
  ready_elsewhere_.erase(elsewhere);
  std::ranges::sort(both, {}, &ReadyOn::stage);
  synchronise(bucket, both);
}

/// A bucket's kernels and transfers, one after the other, on all rank classes of these stages, which lie in this order.
void StepGraphBuilder::synchronise(std::size_t bucket, const std::vector<ReadyOn>& ready) {
  const int stage = ready.front().stage;
  const std::size_t first_class_here = class_in(stage, 0);
  std::vector<std::pair<std::size_t, const StepBlocks::Bucket*>> buckets;  // by rank class, from the first one
  PerClass last(class_in(ready.back().stage, classes_in(ready.back().stage)) - first_class_here, -1);
  for (const auto& [on, chunk, tasks] : ready) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const std::size_t rank_class = class_in(on, i);
      buckets.emplace_back(rank_class - first_class_here, &blocks_.chunks[rank_class][at_index(chunk)].buckets[bucket]);
      last[rank_class - first_class_here] = tasks[i];
    }
  }
  const GradientBucket& first =
      step_.rank_classes[first_class_here].chunks[at_index(ready.front().chunk)].buckets[bucket];
  if (first.stages.empty()) return;
  const auto kernels = [&](std::size_t i, BlockId block) {
    if (block >= 0) last[i] = add(block, streams_[first_class_here + i].gradient_kernels, {last[i]});
  };
  const auto transfer = [&](int index) {
    AfterPerClass after;
    for (const TaskId task : last) after.push_back({task});
    last = add_transfer(stage, index, Traffic::gradients, after);
  };
  for (std::size_t k = 0; k < first.stages.size(); ++k) {
    for (const auto& [i, own] : buckets) kernels(i, own->stages[k]);
    transfer(first.stages[k].transfer);
  }
  for (const auto& [i, own] : buckets) {
    kernels(i, own->after);
    gradient_tasks_[first_class_here + i].push_back(last[i]);
  }
}

/// The neighbour sees the pass once its activations (or their gradients) have arrived there.
void StepGraphBuilder::send(int stage, const PipelinePass& pass, const PerClass& done) {
  if (pass.kind == PassKind::weights) return;
  const auto target = pass.backward() ? placement_.previous(stage, pass.chunk) : placement_.next(stage, pass.chunk);
  if (!target) return;
  std::vector<std::vector<TaskId>>& input = pass.backward() ? gradient_input_ : input_;
  const std::size_t arrival = at(target->chunk, pass.micro_batch);
  if (target->stage == stage) {
    for (std::size_t i = 0; i < done.size(); ++i) input[class_in(stage, i)][arrival] = done[i];
    return;
  }
  const int hop = pass.backward() ? step_.activation_gradients[step_.p2p_index(target->stage, target->chunk)]
                                  : step_.activations[step_.p2p_index(stage, pass.chunk)];
  const bool to_previous = pass.backward() != placement_.reversed(pass.chunk);
  const std::vector<Step::Transfer::Part>& parts = step_.transfers[at_index(hop)].parts;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<TaskId> sent;
    ResourceId stream = -1;
    for (const int rank_class : parts[p].rank_classes) {
      if (step_.rank_classes[at_index(rank_class)].stage != stage) continue;
      sent.push_back(done[at_index(rank_class - first_class(stage))]);
      const Streams& streams = streams_[at_index(rank_class)];
      if (stream < 0) stream = to_previous ? streams.to_previous : streams.to_next;
    }
    const TaskId arrived = add(blocks_.transfers[at_index(hop)][p], stream, std::move(sent), pass.micro_batch);
    result_.transfers.push_back({arrived, hop, p});
    for (const int rank_class : parts[p].rank_classes) {
      if (step_.rank_classes[at_index(rank_class)].stage == target->stage) {
        input[at_index(rank_class)][arrival] = arrived;
      } else if (step_.blocking_messages) {
        awaited_[at_index(rank_class)].push_back(arrived);
      }
    }
  }
}

/// Blocking messages of the stage's last pass have to arrive before whatever it does next.
void StepGraphBuilder::wait_for_messages(int stage, AfterPerClass& after) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::vector<TaskId> awaited = std::exchange(awaited_[class_in(stage, i)], {});
    after[i].insert(after[i].end(), awaited.begin(), awaited.end());
  }
}

void StepGraphBuilder::wait_for_messages(int stage, PerClass& last) {
  for (std::size_t i = 0; i < last.size(); ++i) {
    std::vector<TaskId>& awaited = awaited_[class_in(stage, i)];
    if (awaited.empty()) continue;
    awaited.push_back(last[i]);
    last[i] = meet(streams_[class_in(stage, i)].compute, std::exchange(awaited, {}), -1);
  }
}

}  // namespace foretrain
