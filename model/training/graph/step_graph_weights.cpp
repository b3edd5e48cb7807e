// Weights that are gathered: ZeRO-3's units within every pass, those that ZeRO-1 and 2 updated once a step.
#include <utility>

#include "model/training/graph/step_graph_builder.hpp"

namespace foretrain {

/// Computes run in order on the compute stream; gathers and scatters on one communication stream, and what ranks of the
/// same shard reduce after these on another. A layer's weights are gathered while its predecessor computes, at most two
/// layers ahead (PyTorch FSDP with limit_all_gathers, one prefetch). Without overlap one comes after the other, as on
/// processors, which have no streams.
StepGraphBuilder::PerLane StepGraphBuilder::add_sharded(int stage, const PipelinePass& pass,
                                                        const AfterPerLane& after) {
  const std::size_t lanes = lanes_in(stage);
  const std::vector<ShardedUnit>& units = chunk_of(stage, pass.chunk).units;
  const auto number = [&](std::size_t position) { return pass.backward() ? units.size() - 1 - position : position; };
  const PerLane nothing(lanes, -1);
  std::vector<PerLane> gathered(units.size(), nothing), computed(units.size(), nothing);
  PerLane last = nothing;
  AfterPerLane ends(lanes);
  const auto needs = [&](const PerLane& behind) {
    AfterPerLane all = after;
    for (std::size_t i = 0; i < lanes; ++i) all[i].push_back((step_.overlap ? behind : last)[i]);
    return all;
  };
  const auto send = [&](int transfer, Traffic traffic, const PerLane& behind) {
    last = add_transfer(stage, transfer, traffic, needs(behind), pass.micro_batch);
  };
  const auto end_with_last = [&] {
    for (std::size_t i = 0; i < lanes; ++i) ends[i].push_back(last[i]);
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
    AfterPerLane before = needs(gathered[position]);
    // What runs beside the work is on streams that do not know of it.
    for (std::size_t i = 0; position > 0 && i < lanes; ++i) before[i].push_back(computed[position - 1][i]);
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
  PerLane done;
  for (std::size_t i = 0; i < lanes; ++i) {
    done.push_back(meet(streams_[lane_in(stage, i)].compute, std::move(ends[i]), pass.micro_batch));
  }
  return done;
}

/// Updated weights of a chunk come back to all lanes that hold it, `after` what each lane does before.
void StepGraphBuilder::gather_weights(int stage, int chunk, const AfterPerLane& after) {
  std::vector<PerLane>& gathered = gathered_[at_index(placement_.position(stage, chunk))];
  if (!gathered.empty()) return;  // together with the other stage that holds it
  const AfterPerLane from_here(after.begin() + first_lane(stage), after.end());
  for (const WeightGather& gather : chunk_of(stage, chunk).gathers) {
    PerLane& done = gathered.emplace_back(after.size(), -1);
    for (const int transfer : gather.transfers) {
      const PerLane tasks = add_transfer(stage, transfer, Traffic::gradients, from_here);
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (tasks[i] >= 0) done[lane_in(stage, i)] = tasks[i];
      }
    }
  }
}

/// Those of the step before, from its end on, in the order in which this step's first passes need them.
void StepGraphBuilder::gather_before_passes(const std::vector<std::vector<PipelinePass>>& orders) {
  const AfterPerLane nothing(step_.lanes.size());
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
StepGraphBuilder::PerLane StepGraphBuilder::add_first_forward(int stage, const PipelinePass& pass, AfterPerLane after) {
  const std::vector<PerLane>& gathered = gathered_[at_index(placement_.position(stage, pass.chunk))];
  PerLane done;
  for (std::size_t g = 0; g < gathered.size(); ++g) {
    for (std::size_t i = 0; i < after.size(); ++i) after[i].push_back(gathered[g][lane_in(stage, i)]);
    done = add_work(stage, pass, std::move(after),
                    [&](const auto& chunks) -> const Work& { return chunks[at_index(pass.chunk)].gathered[g]; });
    after.clear();
    for (const TaskId task : done) after.push_back({task});
  }
  return done;
}

}  // namespace foretrain
