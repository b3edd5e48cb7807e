// One collective in progress: which flows start when. A program is made once per block; a run once per task.
#pragma once

#include <vector>

#include "model/collectives/collective.hpp"
#include "model/graph/event_queue.hpp"
#include "sim/moving_flows.hpp"
#include "sim/network_plan.hpp"

namespace foretrain {

/// Phases one after the other: the next begins when all messages of the last one have arrived. In each repetition of a
/// phase a message starts `latency` after both its ends have finished all that they send and receive in the repetition
/// before (buffers are used again): within a phase there is no barrier, so that a late rank delays its neighbours
/// first.
struct CollectiveProgram {
  struct Message {
    std::int32_t source = 0, destination = 0;  ///< numbered from zero within a phase
    NetworkPlan::Amount amount;

    [[nodiscard]] int ends() const { return source == destination ? 1 : 2; }
  };
  struct Phase {
    Seconds latency;
    int repeat = 1;
    std::vector<Message> messages;
    std::vector<std::vector<std::int32_t>> messages_of;  ///< messages of each end in every repetition
  };
  std::vector<Phase> phases;
};

/// Fidelity flows: a phase waits latency × repeat and then moves bytes × repeat at once. A ring of n ranks is n flows
/// instead of 2n(n-1).
CollectiveProgram flows_program(const LoweredCollective& lowered, NetworkPlan& plan);

/// Fidelity steps: every repetition of a phase is a step with messages of its own. Messages between the same two
/// endpoints in one phase are one.
CollectiveProgram steps_program(const LoweredCollective& lowered, NetworkPlan& plan);

/// A program in progress, which must outlive it. Its events come back to it with the `part` it gave them.
class CollectiveRun {
 public:
  CollectiveRun(const CollectiveProgram& program, EventQueue& events, MovingFlows& flows, TaskId task)
      : phases_(program.phases), events_(events), flows_(flows), task_(task) {}

  void begin(Seconds now) { begin_phase(0, now); }
  /// The waiting time before `part` is over: its flows start.
  void start_flows(std::int32_t part, Seconds now);
  /// Every flow of `part` has arrived.
  void end_flows(std::int32_t part, Seconds now);
  /// Known once nothing of the run is moving any more.
  [[nodiscard]] bool finished() const { return phase_ == phases_.size(); }

 private:
  struct End {
    int repetition = 0;
    std::size_t unfinished = 0;  ///< messages of this repetition
  };

  [[nodiscard]] const CollectiveProgram::Phase& phase() const { return phases_[phase_]; }
  void begin_phase(std::size_t number, Seconds now);
  void begin_repetition(std::int32_t end, Seconds now);
  void finish_message(std::int32_t end, Seconds now);

  const std::vector<CollectiveProgram::Phase>& phases_;
  EventQueue& events_;
  MovingFlows& flows_;
  TaskId task_;
  std::size_t phase_ = 0;
  std::vector<End> ends_;
  std::vector<int> ends_ready_;  ///< by message: how many of its ends have reached its repetition
  std::size_t active_ = 0;       ///< ends with repetitions left
};

}  // namespace foretrain
