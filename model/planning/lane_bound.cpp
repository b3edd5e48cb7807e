#include "model/planning/lane_bound.hpp"

#include <algorithm>

namespace foretrain {

LaneBound::LaneBound(const Step& step, std::size_t lane) : lane_(step.lanes[lane]), transfers_(step.transfers.size()) {
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    for (const Step::Transfer::Part& part : step.transfers[i].parts) {
      if (std::ranges::binary_search(part.lanes, static_cast<int>(lane))) {
        transfers_[i] = std::max(transfers_[i], part.uncontended);
      }
    }
  }
}

Seconds LaneBound::pass(const PipelinePass& pass) const {
  const Step::Chunk& chunk = lane_.chunks[at_index(pass.chunk)];
  if (!chunk.units.empty()) {
    Seconds time;
    for (const ShardedUnit& unit : chunk.units) {
      time += pass.backward ? least(unit.backward, unit.backward_pieces) : least(unit.forward, unit.forward_pieces);
    }
    return time;
  }
  if (!pass.backward) {
    return pass.beside_next ? least(chunk.paired, chunk.paired_pieces) : least(chunk.forward, chunk.forward_pieces);
  }
  if (pass.part == PipelinePass::Part::whole) return least(chunk.backward, chunk.backward_pieces);
  return pass.part == PipelinePass::Part::inputs ? least(chunk.inputs, chunk.inputs_pieces)
                                                 : least(chunk.weights, chunk.weights_pieces);
}

Seconds LaneBound::sent(const GradientBucket& bucket) const {
  Seconds time = transfer(bucket.transfer);
  for (const GradientBucket::Stage& part : bucket.further) time += transfer(part.transfer);
  return time;
}

Seconds LaneBound::gathered(const WeightGather& gather) const {
  Seconds time;
  for (const int index : gather.transfers) time += transfer(index);
  return time;
}

Seconds LaneBound::least(const Segment& whole, const std::vector<Piece>& pieces) const {
  if (pieces.empty()) return whole.total();
  Seconds time;
  for (const Piece& piece : pieces) {
    Seconds moving;
    for (const int index : piece.transfers) moving += transfer(index);
    time += piece.beside ? std::max(piece.work, moving) : piece.work + moving;
  }
  return std::min(time, whole.total());
}

}  // namespace foretrain
