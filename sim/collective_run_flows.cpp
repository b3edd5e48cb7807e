#include <utility>

#include "sim/collective_run.hpp"

namespace foretrain {

namespace {

struct FlowsPhase {
  Seconds latency;  ///< all repetitions together
  int repeat = 1;
  SetIndex set = 0;
};

class FlowsRun final : public CollectiveRun {
 public:
  FlowsRun(const std::vector<FlowsPhase>& phases, const CollectiveRun::Context& context)
      : phases_(phases), context_(context) {}

  void begin(Seconds now) override { wait(0, now); }
  void start_flows(std::int32_t part, Seconds now) override {
    const FlowsPhase& phase = phases_[static_cast<std::size_t>(part)];
    context_.flows.start(phase.set, phase.repeat, now, context_.task, part, context_.events);
  }
  void end_flows(std::int32_t part, Seconds now) override { wait(part + 1, now); }
  [[nodiscard]] bool finished() const override { return finished_; }

 private:
  void wait(std::int32_t part, Seconds now) {
    if (std::cmp_equal(part, phases_.size())) {
      finished_ = true;
    } else {
      const Seconds latency = phases_[static_cast<std::size_t>(part)].latency;
      context_.events.push({now + latency, Event::Kind::flows_start, context_.task, part});
    }
  }

  const std::vector<FlowsPhase>& phases_;
  CollectiveRun::Context context_;
  bool finished_ = false;
};

class FlowsProgram final : public CollectiveProgram {
 public:
  explicit FlowsProgram(std::vector<FlowsPhase> phases) : phases_(std::move(phases)) {}
  [[nodiscard]] std::unique_ptr<CollectiveRun> run(const CollectiveRun::Context& context) const override {
    return std::make_unique<FlowsRun>(phases_, context);
  }

 private:
  std::vector<FlowsPhase> phases_;
};

}  // namespace

std::unique_ptr<CollectiveProgram> make_flows_program(const LoweredCollective& lowered, NetworkPlan& plan) {
  std::vector<FlowsPhase> phases;
  for (const LoweredCollective::Phase& phase : lowered.phases) {
    phases.push_back({phase.latency * phase.repeat, phase.repeat, plan.add_set(phase.flows)});
  }
  return std::make_unique<FlowsProgram>(std::move(phases));
}

}  // namespace foretrain
