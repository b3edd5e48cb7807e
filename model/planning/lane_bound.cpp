#include "model/planning/lane_bound.hpp"

#include <algorithm>

namespace foretrain {

LaneBound::LaneBound(const Step& step, std::size_t lane) : transfers_(step.transfers.size()) {
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    for (const Step::Transfer::Part& part : step.transfers[i].parts) {
      if (std::ranges::binary_search(part.lanes, static_cast<int>(lane))) {
        transfers_[i] = std::max(transfers_[i], part.uncontended);
      }
    }
  }
  for (const Step::Chunk& chunk : step.lanes[lane].chunks) {
    PerPass<Seconds>& times = passes_.emplace_back();
    for (const PassKind kind : pass_kinds) {
      if (chunk.units.empty()) times[kind] = least(chunk.passes[kind]);
      const bool backward = PipelinePass{kind}.backward();
      for (const ShardedUnit& unit : chunk.units) times[kind] += least(backward ? unit.backward : unit.forward);
    }
  }
}

Seconds LaneBound::sent(const GradientBucket& bucket) const {
  Seconds time;
  for (const GradientBucket::Stage& stage : bucket.stages) time += transfer(stage.transfer);
  return time;
}

Seconds LaneBound::gathered(const WeightGather& gather) const {
  Seconds time;
  for (const int index : gather.transfers) time += transfer(index);
  return time;
}

Seconds LaneBound::weights(const Step::Chunk& chunk) const {
  Seconds time;
  for (const ShardedUnit& unit : chunk.units) {
    time += transfer(unit.gather) + transfer(unit.gather_backward) + transfer(unit.scatter);
  }
  return time;
}

Seconds LaneBound::least(const Stretch& stretch) const {
  if (stretch.pieces.empty()) return stretch.time.total();
  Seconds time;
  for (const Piece& piece : stretch.pieces) {
    Seconds moving;
    for (const int index : piece.transfers) moving += transfer(index);
    time += piece.beside ? std::max(piece.work, moving) : piece.work + moving;
  }
  return std::min(time, stretch.time.total());
}

}  // namespace foretrain
