#include "model/training/jitter.hpp"

#include <algorithm>

#include "model/base/spread.hpp"
#include "model/training/step_graph.hpp"

namespace foretrain {

namespace {

constexpr int steps_drawn = 40;

void stretch(std::vector<Piece>& pieces, double factor) {
  for (Piece& piece : pieces) piece.work *= factor;
}

/// Kernels take longer; the host's work and collectives do not.
void slow_down(Step::Lane& lane, double factor) {
  const auto slow = [factor](Segment& segment) { segment.compute *= factor; };
  for (Step::Chunk& chunk : lane.chunks) {
    for (Segment* pass : {&chunk.forward, &chunk.backward, &chunk.inputs, &chunk.weights, &chunk.paired}) slow(*pass);
    for (std::vector<Piece>* pieces : {&chunk.forward_pieces, &chunk.backward_pieces, &chunk.inputs_pieces,
                                       &chunk.weights_pieces, &chunk.paired_pieces}) {
      stretch(*pieces, factor);
    }
    for (GradientBucket& bucket : chunk.buckets) {
      slow(bucket.backward);
      stretch(bucket.pieces, factor);
    }
    for (WeightGather& gather : chunk.gathers) {
      slow(gather.forward);
      stretch(gather.pieces, factor);
    }
    for (ShardedUnit& unit : chunk.units) {
      slow(unit.forward);
      slow(unit.backward);
      stretch(unit.forward_pieces, factor);
      stretch(unit.backward_pieces, factor);
    }
  }
  slow(lane.optimizer);
}

void slow_down(LoweredCollective& lowered, double factor) {
  for (LoweredCollective::Phase& phase : lowered.phases) {
    for (Flow& flow : phase.flows) flow.bytes *= factor;
  }
}

}  // namespace

std::vector<Seconds> steps_with_jitter(const Step& step, const Jitter& jitter,
                                       const std::function<Execution(const TaskGraph&)>& execute) {
  std::vector<Seconds> lengths;
  for (int i = 0; i < steps_drawn; ++i) {
    const int draw = jitter.seed * steps_drawn + i;
    Step drawn = step;
    for (Step::Lane& lane : drawn.lanes) {
      slow_down(lane, largest_factor(lane.first_rank, lane.ranks, draw, jitter.compute));
    }
    int flows = 0;
    for (Step::Transfer& transfer : drawn.transfers) {
      for (Step::Transfer::Part& part : transfer.parts) {
        int own = 0;
        for (const LoweredCollective::Phase& phase : part.lowered.phases) {
          own = std::max(own, static_cast<int>(phase.flows.size()));
        }
        if (own == 0) continue;
        const double factor = largest_factor(-1 - flows - own, own, draw, jitter.network);
        flows += own;
        slow_down(part.lowered, factor);
        part.uncontended *= factor;
      }
    }
    lengths.push_back(execute(step_graph(drawn).graph).makespan);
  }
  std::ranges::sort(lengths);
  return lengths;
}

}  // namespace foretrain
