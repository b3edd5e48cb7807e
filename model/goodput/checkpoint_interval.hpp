// The checkpoint interval: by Young's and Daly's formulas, and by simulated trainings.
#pragma once

#include <optional>
#include <vector>

#include "model/goodput/lifetime.hpp"

namespace foretrain {

/// Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974: with a checkpoint that
/// takes d and a mean time between failures M, the time to work between two checkpoints is √(2 d M). It is the minimum
/// of d/t + t/(2 M): what checkpoints take, and half an interval lost at each failure.
Seconds young_interval(Seconds checkpoint, Seconds mtbf);

/// Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006, equation 37:
/// √(2 d M) (1 + √(d/(2 M))/3 + d/(18 M)) - d, and M where d is 2 M or more.
Seconds daly_interval(Seconds checkpoint, Seconds mtbf);

/// Share of the time that is work, for failures that are exponentially distributed, checkpoints that training waits
/// for and that can be restored at once, and a recovery of constant length R in which it can fail again (Daly,
/// equation 20, without what is left over at the end): t / (M e^(R/M) (e^((t + d)/M) - 1)).
double daly_goodput(Seconds interval, Seconds checkpoint, Seconds recovery, Seconds mtbf);

/// Steps between checkpoints, and the goodput of trainings that save so often.
struct IntervalChoice {
  int every = 1;
  double goodput = 0.0;
};

struct IntervalSearch {
  /// Both count a checkpoint that training waits for; nothing where it is written beside the training.
  std::optional<IntervalChoice> young = {}, daly = {};
  /// By simulation, of intervals that lie a tenth or less apart. What is written beside the training costs it next to
  /// nothing, yet fills storage and its network: there the longest interval within a thousandth of the best goodput.
  IntervalChoice best;
  std::vector<IntervalChoice> tried = {};  ///< ascending
};

/// `life.every` does not matter. All intervals meet the same failures; none is shorter than a checkpoint takes, or
/// longer than the training. Young's and Daly's checkpoint is what holds training up.
IntervalSearch search_interval(Lifetime life, int trainings, int seed);

}  // namespace foretrain
