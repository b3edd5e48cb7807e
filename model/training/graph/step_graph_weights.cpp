// Weights that are gathered: ZeRO-3's units within every pass, those that ZeRO-1 and 2 updated once a step.
#include <utility>

#include "model/training/graph/step_graph_builder.hpp"

namespace foretrain {

/// Computes run in order on the compute stream; gathers and scatters on one communication stream, and what ranks of the
/// same shard reduce after these on another. A layer's weights are gathered while its predecessor computes, at most two
/// layers ahead (PyTorch FSDP with limit_all_gathers, one prefetch). Without overlap one comes after the other, as on
/// processors, which have no streams.
StepGraphBuilder::PerClass StepGraphBuilder::add_sharded(int stage, const PipelinePass& pass,
                                                         const AfterPerClass& after) {
  const std::size_t rank_classes = classes_in(stage);
  const std::vector<ShardedUnit>& units = chunk_of(stage, pass.chunk).units;
  const auto number = [&](std::size_t position) { return pass.backward() ? units.size() - 1 - position : position; };
  const PerClass nothing(rank_classes, -1);
  std::vector<PerClass> gathered(units.size(), nothing), computed(units.size(), nothing);
  PerClass last = nothing;
  AfterPerClass ends(rank_classes);
  const auto needs = [&](const PerClass& behind) {
    AfterPerClass all = after;
    for (std::size_t i = 0; i < rank_classes; ++i) all[i].push_back((step_.overlap ? behind : last)[i]);
    return all;
  };
  const auto send = [&](int transfer, Traffic traffic, const PerClass& behind) {
    last = add_transfer(stage, transfer, traffic, needs(behind), pass.micro_batch);
  };
  const auto end_with_last = [&] {
    for (std::size_t i = 0; i < rank_classes; ++i) ends[i].push_back(last[i]);
  };
  const auto gather = [&](std::size_t position) {
    if (position >= units.size()) return;
    const ShardedUnit& unit = units[number(position)];
    const int transfer = pass.backward() ? unit.gather_backward : unit.gather;
    if (transfer < 0) return;
    send(transfer, Traffic::gradients, position >= 2 ? computed[position - 2] : nothing);
    gathered[position] = last;
  };
  if (step_.overlap) gather(0);
  for (std::size_t position = 0; position < units.size(); ++position) {
    gather(step_.overlap ? position + 1 : position);
    AfterPerClass before = needs(gathered[position]);
    // Concurrent work is on streams that do not wait for this one.
    for (std::size_t i = 0; position > 0 && i < rank_classes; ++i) before[i].push_back(computed[position - 1][i]);
    last = computed[position] = add_work(stage, pass, std::move(before), [&](const auto& chunks) -> const Work& {
      const StepBlocks::Chunk& own = chunks[at_index(pass.chunk)];
      return (pass.backward() ? own.unit_backward : own.unit_forward)[number(position)];
    });
    end_with_last();
    const ShardedUnit& unit = units[number(position)];
    for (const auto& [transfer, traffic] :
         {std::pair(unit.scatter, Traffic::gradients), std::pair(unit.reduce, Traffic::copies)}) {
      if (!pass.backward() || transfer < 0) continue;
      send(transfer, traffic, last);
      end_with_last();
    }
  }
  PerClass done;
  for (std::size_t i = 0; i < rank_classes; ++i) {
    done.push_back(meet(streams_[class_in(stage, i)].compute, std::move(ends[i]), pass.micro_batch));
  }
  return done;
}

/// Updated weights of a chunk come back to all rank classes that hold it, `after` what each rank class does before.
void StepGraphBuilder::gather_weights(int stage, int chunk, const AfterPerClass& after) {
  std::vector<PerClass>& gathered = gathered_[at_index(placement_.position(stage, chunk))];
  if (!gathered.empty()) return;  // together with the other stage that holds it
  const AfterPerClass from_here(after.begin() + first_class(stage), after.end());
  for (const WeightGather& gather : chunk_of(stage, chunk).gathers) {
    PerClass& done = gathered.emplace_back(after.size(), -1);
    for (const int transfer : gather.transfers) {
      const PerClass tasks = add_transfer(stage, transfer, Traffic::gradients, from_here);
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (tasks[i] >= 0) done[class_in(stage, i)] = tasks[i];
      }
    }
  }
}

/// Gathers of the step before, from its end on, in the order of this step's first passes.
void StepGraphBuilder::gather_before_passes(const std::vector<std::vector<PipelinePass>>& orders) {
  const AfterPerClass nothing(step_.rank_classes.size());
  for (int stage = 0; stage < stages_; ++stage) {
    std::vector<bool>& awaited = weights_awaited_[at_index(stage)];
    for (const PipelinePass& pass : orders[at_index(stage)]) {
      if (pass.backward() || awaited[at_index(pass.chunk)] || chunk_of(stage, pass.chunk).gathers.empty()) continue;
      awaited[at_index(pass.chunk)] = true;
      gather_weights(stage, pass.chunk, nothing);
    }
  }
}

/// Each layer waits for its own weights.
StepGraphBuilder::PerClass StepGraphBuilder::add_first_forward(int stage, const PipelinePass& pass,
                                                               AfterPerClass after) {
  const std::vector<PerClass>& gathered = gathered_[at_index(placement_.position(stage, pass.chunk))];
  PerClass done;
  for (std::size_t g = 0; g < gathered.size(); ++g) {
    for (std::size_t i = 0; i < after.size(); ++i) after[i].push_back(gathered[g][class_in(stage, i)]);
    done = add_work(stage, pass, std::move(after),
                    [&](const auto& chunks) -> const Work& { return chunks[at_index(pass.chunk)].gathered[g]; });
    after.clear();
    for (const TaskId task : done) after.push_back({task});
  }
  return done;
}

}  // namespace foretrain
