// The moments of a step that its breakdown is read from, whoever found them, and how long a step takes by formula.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "model/training/step.hpp"

namespace foretrain {

/// Adds up to the step.
struct Breakdown {
  Seconds compute, exposed_communication, pipeline_bubble, data_stall, host_overhead, optimizer;
  [[nodiscard]] Seconds total() const {
    return compute + exposed_communication + pipeline_bubble + data_stall + host_overhead + optimizer;
  }
};

struct CommunicationTime {
  Seconds total;
  Seconds exposed;
};

/// Moments since the step began.
struct StepTimes {
  Seconds backward_done;  ///< the last stage to finish its last backward pass
  Seconds synchronised;   ///< all gradients synchronised
  Seconds end;            ///< optimizer done, weights gathered
  /// Time between steps that the input pipeline was found to allow; nothing: Step::loader_interval.
  std::optional<Seconds> loader = std::nullopt;
};

/// Closed form: recursions over (stage, pass) and over buckets or sharded units; no task is created. Cost: a few
/// nanoseconds per pass.
StepTimes estimate_step(const Step& step);

/// Reads moments from an execution of unroll(step).
StepTimes times_of(const UnrolledStep& unrolled, const Execution& execution);

/// Where the step's time goes, seen from the stage with the most work; adds up to step_time(step, times).
Breakdown breakdown_of(const Step& step, const StepTimes& times);

/// The step's length including host work between steps and waiting for data.
Seconds step_time(const Step& step, const StepTimes& times);

/// Total and exposed time of each kind of transfer on one rank; exposed time is shared in proportion to the totals.
std::map<std::string, CommunicationTime> communication_of(const Step& step, const Breakdown& breakdown);

}  // namespace foretrain
