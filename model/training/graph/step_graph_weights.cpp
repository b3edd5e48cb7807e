// Weights that are gathered: ZeRO-3's units within every pass, those that ZeRO-1 and 2 updated once a step.
#include <utility>

#include "model/training/graph/sharded_order.hpp"
#include "model/training/graph/step_graph_builder.hpp"

namespace foretrain {

StepGraphBuilder::PerLane StepGraphBuilder::add_sharded(int stage, const PipelinePass& pass,
                                                        const AfterPerLane& after) {
  const std::size_t lanes = lanes_in(stage);
  std::vector<PerLane> tasks;
  AfterPerLane ends(lanes);
  PerLane worked(lanes, -1);  // on the unit before; what runs beside the work is on streams that do not know of it
  const std::vector<ShardedUnit>& units = chunk_of(stage, pass.chunk).units;
  for (const ShardedUnit::Pass& part : sharded_order(units, pass.backward(), step_.overlap)) {
    const ShardedUnit& unit = units[at_index(part.unit)];
    AfterPerLane needs = after;
    for (std::size_t i = 0; i < lanes; ++i) {
      for (const int before : part.after) needs[i].push_back(tasks[at_index(before)][i]);
    }
    if (part.kind == ShardedUnit::Pass::Kind::compute) {
      for (std::size_t i = 0; i < lanes; ++i) needs[i].push_back(worked[i]);
      tasks.push_back(add_work(stage, pass, std::move(needs), [&](const auto& chunks) -> const Work& {
        const StepBlocks::Chunk& own = chunks[at_index(pass.chunk)];
        return (pass.backward() ? own.unit_backward : own.unit_forward)[at_index(part.unit)];
      }));
      worked = tasks.back();
    } else {
      const bool among_copies = part.kind == ShardedUnit::Pass::Kind::reduce;
      const int gather = pass.backward() ? unit.gather_backward : unit.gather;
      const int transfer = among_copies                                    ? unit.reduce
                           : part.kind == ShardedUnit::Pass::Kind::scatter ? unit.scatter
                                                                           : gather;
      tasks.push_back(
          add_transfer(stage, transfer, among_copies ? Traffic::copies : Traffic::gradients, needs, pass.micro_batch));
    }
    if (part.kind == ShardedUnit::Pass::Kind::gather) continue;
    for (std::size_t i = 0; i < lanes; ++i) ends[i].push_back(tasks.back()[i]);
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
