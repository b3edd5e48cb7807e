// What a block does, for executors that really do it: operators, copies, collectives and what the host does. Made by
// the code that costs the blocks, so that what is priced is what is run; only where it is asked for (Recipes::kept).
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "model/collectives/operation.hpp"
#include "model/cost/launches.hpp"
#include "model/hardware/gpu.hpp"

namespace foretrain {

/// Whether blocks keep what they do. Predictions need their durations alone.
enum class Recipes : bool { none = false, kept = true };

/// An operator on the device, launched `count` times, and what one of these was predicted to take.
struct KernelWork {
  Operator op = {};
  int count = 1;
  Seconds predicted = {};
};

/// Between memories of devices: "gpu0", "cpu", "cpu1".
struct CopyWork {
  std::string from, to;
  Bytes size;
  bool pinned = true;  ///< memory of a host is page-locked; pageable memory on a host is fresh, as frameworks have it
};

/// All GPUs of a data-parallel group.
struct CollectiveWork {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  Bytes size = {};  ///< as nccl-tests counts it
  int ranks = 1;
  SyncAlgorithm algorithm = SyncAlgorithm::automatic;
  int servers = 1;
  ServerPlacement placement = ServerPlacement::cpu;
  int count = 1;  ///< one after the other, `size` each
};

/// On a host thread.
struct HostWork {
  enum class Action {
    dispatch,  ///< hands `kernels` of the tasks that follow it to the device, as one CUDA graph where `graph` says so
    launch,    ///< a launch is on its way: nothing to do for whoever really launches
    sleep,     ///< for `duration`
    wait,      ///< until what it depends on is done
    synchronize,  ///< until everything that the thread has launched is done
    format,       ///< turns `size` bytes that have arrived into text
    page_lock     ///< allocates `size` bytes of page-locked memory
  };
  Action action = Action::wait;
  Seconds duration = {};
  Bytes size = {};
  int kernels = 0;
  bool graph = false;
};

using Work = std::variant<KernelWork, CopyWork, CollectiveWork, HostWork>;

/// Done in this order.
struct Recipe {
  std::vector<Work> work;
};
using RecipePointer = std::shared_ptr<const Recipe>;

RecipePointer recipe_of(Work work);
/// One behind the other; either may be nothing.
RecipePointer joined(const RecipePointer& first, const RecipePointer& second);

/// Operators as plan_launches() and launch_totals() price them, `times` over, each `stretch` times as long (see
/// StepConstants::kernel_stretch). Compiled execution fuses elementwise operators into the one before them; what such a
/// kernel moves is then added to the traffic of its producer, or, behind a product, kept as a kernel that moves what
/// the producer would not have: nothing for an activation, which is left out.
std::vector<Work> kernels_of(const std::vector<Operator>& ops, ExecutionMode mode, double stretch, const Gpu& gpu,
                             const Calibration& calibration);

/// The launches of a plan made from `ops`, one recipe each, in order.
std::vector<RecipePointer> recipes_of(const LaunchPlan& plan, const std::vector<Operator>& ops);

}  // namespace foretrain
