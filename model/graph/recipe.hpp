// The work of blocks, made by the code that costs the blocks, so that what is priced is what is run; only where it is
// asked for (Recipes::kept).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/cost/launches.hpp"
#include "model/graph/work.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Whether blocks keep what they do. Predictions need their durations alone.
enum class Recipes : bool { none = false, kept = true };

/// Done in this order.
struct Recipe {
  std::vector<Work> work;
  std::string obstacle;  ///< what of it no executor can do ("attention with a bias"); empty where all can be done
};
using RecipePointer = std::shared_ptr<const Recipe>;

RecipePointer recipe_of(Work work);
/// An operator, launched `count` times, and what one of these was predicted to take.
RecipePointer recipe_of(const Operator& op, int count, Seconds predicted);
/// A collective of `ranks` GPUs, `count` times: by NCCL, or by the project's own servers; "naive" is a server on the
/// first GPU.
RecipePointer recipe_of(CollectiveOperation operation, Bytes size, int ranks, SyncAlgorithm algorithm, int servers,
                        ServerPlacement placement, int count = 1);
/// One behind the other; either may be nothing.
RecipePointer joined(const RecipePointer& first, const RecipePointer& second);

/// Operators as plan_launches() and launch_totals() price them, `times` over, each `stretch` times as long (see
/// StepConstants::kernel_stretch). Compiled execution fuses elementwise operators into the one before them; what such a
/// kernel moves is then added to the traffic of its producer, or, behind a product, kept as a kernel that moves what
/// the producer would not have: nothing for an activation, which is left out.
Recipe kernels_of(const std::vector<Operator>& ops, ExecutionMode mode, double stretch, const Gpu& gpu,
                  const Calibration& calibration);

/// The launches of a plan made from `ops`, one recipe each, in order.
std::vector<RecipePointer> recipes_of(const LaunchPlan& plan, const std::vector<Operator>& ops);

}  // namespace foretrain
