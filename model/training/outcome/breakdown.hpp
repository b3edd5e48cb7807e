// Breakdown of a step. In: a Step and the moments at which its tasks ended. Out: where the time goes, what of
// each collective is exposed, what unequal devices, unequal replicas and checkpoints add.
//
// Invariants: the parts of a breakdown add up to the step; what is exposed is part of the total.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "model/training/graph/step_graph.hpp"

namespace foretrain {

/// Adds up to the step.
struct Breakdown {
  Seconds compute, exposed_communication, pipeline_bubble, data_stall, host_overhead, optimizer;
  [[nodiscard]] Seconds total() const {
    return compute + exposed_communication + pipeline_bubble + data_stall + host_overhead + optimizer;
  }
};

/// A part during which GPUs rest, and the share of the step above which it is what bounds the step.
struct IdlePart {
  const char* name;
  Seconds Breakdown::*time;
  double limit;
};

/// In the order of the decision tree (requirement R16): what starves GPUs comes before what they do.
inline constexpr std::array<IdlePart, 4> idle_parts = {
    {{"data loading", &Breakdown::data_stall, 0.10},
     {"host overhead", &Breakdown::host_overhead, 0.10},
     {"pipeline bubble", &Breakdown::pipeline_bubble, 0.30},
     {"exposed communication", &Breakdown::exposed_communication, 0.30}}};

/// The first of `idle_parts` above its limit; else "compute" or "optimizer", whichever is longer.
const char* bottleneck_of(const Breakdown& breakdown);

struct CommunicationTime {
  Seconds total;
  Seconds exposed;
  std::string algorithm = {};  ///< algorithm, protocol: "ring/LL128", several with commas; empty: nothing of the kind
  Bytes sent = {};             ///< by a GPU, as bus bandwidths count; 0: not known
};

/// One kind of collective inside layers, over a step.
struct InsideTraffic {
  double count = 0.0;
  Bytes sent;     ///< by a GPU, as bus bandwidths count
  Seconds alone;  ///< that all of them take while nothing else moves, hidden or not
};

/// The difference of two sums that should be equal, or a part of `whole`: zero where it is rounding (1e-9 of `whole`).
Seconds beyond_rounding(Seconds difference, Seconds whole);

/// The step's length including host work between steps and data stall. `end`: of its graph. The time between
/// steps that the input pipeline allows is `loader` where it has been found, else Step::loader_interval.
Seconds step_time(const Step& step, Seconds end, std::optional<Seconds> loader = std::nullopt);

struct TimeUse {
  Breakdown breakdown;
  std::map<std::string, CommunicationTime> communication;  ///< by kind of transfer; algorithms of all of the name
  std::map<std::string, InsideTraffic> inside_layers;      ///< by what the collectives are
};

/// Breakdown of the step's time, as the sum of the tasks of the rank class with the most work and the idle time
/// between them. Adds up to step_time(step, end, loader), where `end` is the execution's or later by what chance adds.
///
/// Pipeline bubble: what the rank class would be idle before the last backward pass if messages took no time. What it
/// is idle beside is exposed communication: of the transfer that is in progress, or of several equally, else waiting
/// for other ranks.
TimeUse time_use(const Step& step, const StepGraph& graph, const Execution& execution, Seconds end,
                 std::optional<Seconds> loader = std::nullopt);

}  // namespace foretrain
