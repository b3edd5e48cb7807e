// One collective in progress: which flows start when. A program is made once per block; a run once per task.
#pragma once

#include <memory>
#include <vector>

#include "model/collectives/collective.hpp"
#include "model/graph/event_queue.hpp"
#include "sim/moving_flows.hpp"
#include "sim/network_plan.hpp"

namespace foretrain {

/// A collective in progress. Its events come back to it with the `part` it gave them.
class CollectiveRun {
 public:
  /// What a run acts upon.
  struct Context {
    EventQueue& events;
    MovingFlows& flows;
    TaskId task;
  };

  virtual ~CollectiveRun() = default;
  virtual void begin(Seconds now) = 0;
  /// The waiting time before `part` is over: its flows start.
  virtual void start_flows(std::int32_t part, Seconds now) = 0;
  /// Every flow of `part` has arrived.
  virtual void end_flows(std::int32_t part, Seconds now) = 0;
  /// Known once nothing of the run is moving any more.
  [[nodiscard]] virtual bool finished() const = 0;
};

class CollectiveProgram {
 public:
  virtual ~CollectiveProgram() = default;
  /// The program must outlive the run.
  [[nodiscard]] virtual std::unique_ptr<CollectiveRun> run(const CollectiveRun::Context& context) const = 0;
};

/// Fidelity flows: a phase waits latency × repeat and then moves bytes × repeat at once; the next phase begins when all
/// of it has arrived. A ring of n ranks is n flows instead of 2n(n-1).
std::unique_ptr<CollectiveProgram> make_flows_program(const LoweredCollective& lowered, NetworkPlan& plan);

/// Fidelity steps: every repetition of a phase is a step with messages of its own. A message starts `latency` after
/// both its ends have finished all that they send and receive in the repetition before (buffers are used again): within
/// a phase there is no barrier, so that a late rank delays its neighbours first. The next phase begins when all of this
/// one has arrived. Messages between the same two endpoints in one phase are one.
std::unique_ptr<CollectiveProgram> make_steps_program(const LoweredCollective& lowered, NetworkPlan& plan);

}  // namespace foretrain
