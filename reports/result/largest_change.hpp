// The part of a step that differs most between two predictions: why one is faster.
#pragma once

#include <string>

#include "model/result.hpp"

namespace foretrain {

struct LargestChange {
  Seconds Breakdown::*part;
  std::string name;  ///< "compute"; "exposed gradient all-reduce", the collective that gets longer most
  Seconds time;      ///< of as many samples as a step of `before`; negative where it gets shorter
  /// ", compute -9.18 ms": what changes at least half as much the other way, or makes a bubble longer.
  std::string also = {};
};

/// In the direction in which the time per sample changes.
LargestChange largest_change(const TrainResult& now, const TrainResult& before);

/// "+9.18 ms".
std::string signed_seconds(Seconds time);

}  // namespace foretrain
