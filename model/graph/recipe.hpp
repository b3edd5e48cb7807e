// The work of blocks, made by the code that costs the blocks, so that what is priced is what is run; only where it is
// asked for (Recipes::kept).
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "model/base/work.hpp"
#include "model/collectives/operation.hpp"
#include "model/cost/launches.hpp"
#include "model/hardware/gpu.hpp"

namespace foretrain {

/// Whether blocks keep what they do. Predictions need their durations alone.
enum class Recipes : bool { none = false, kept = true };

/// Whether collectives inside layers are tasks of their own wherever they may be, or only where they may meet other
/// traffic. The step takes as long; code that sums traffic sees them.
enum class InsideLayers : bool { merged = false, seen = true };

/// An operator on the device, launched `count` times, and what one of these was predicted to take. It becomes a
/// KernelWork where a graph is exported, in the words of scenarios.
struct PricedOperator {
  Operator op = {};
  int count = 1;
  Seconds predicted = {};
};

/// Work whose operators are priced.
template <typename AnyWork>
struct PricedWork;
template <typename... Others>
struct PricedWork<std::variant<KernelWork, Others...>> {
  using type = std::variant<PricedOperator, Others...>;
};
using RecipeWork = PricedWork<Work>::type;

/// Done in this order.
struct Recipe {
  std::vector<RecipeWork> work;
};
using RecipePointer = std::shared_ptr<const Recipe>;

RecipePointer recipe_of(RecipeWork work);
/// A collective of `ranks` GPUs, `count` times: by NCCL, or by the project's own servers; "naive" is a server on the
/// first GPU.
CollectiveWork collective_work(CollectiveOperation operation, Bytes size, int ranks, SyncAlgorithm algorithm,
                               int servers, ServerPlacement placement, int count = 1);
/// One behind the other; either may be nothing.
RecipePointer joined(const RecipePointer& first, const RecipePointer& second);

/// Operators as plan_launches() and launch_totals() price them, `times` over, each `stretch` times as long (see
/// StepConstants::kernel_stretch). Compiled execution fuses elementwise operators into the one before them. What such a
/// kernel moves is then added to the traffic of its producer, or, behind a product, kept as a kernel that moves what
/// the producer would not have. Nothing for an activation, which is left out.
Recipe kernels_of(const std::vector<Operator>& ops, ExecutionMode mode, double stretch, const Gpu& gpu,
                  const Calibration& calibration);

/// The launches of a plan made from `ops`, one recipe each, in order.
std::vector<RecipePointer> recipes_of(const LaunchPlan& plan, const std::vector<Operator>& ops);

}  // namespace foretrain
