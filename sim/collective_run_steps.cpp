#include <map>
#include <utility>

#include "sim/collective_run.hpp"

namespace foretrain {

namespace {

using Endpoint = std::int32_t;  ///< numbered from zero within a phase

struct Message {
  Endpoint source = 0;
  Endpoint destination = 0;
  SetIndex set = 0;

  [[nodiscard]] int ends() const { return source == destination ? 1 : 2; }
};

struct StepsPhase {
  Seconds latency;
  int repeat = 1;
  std::vector<Message> messages;
  std::vector<std::vector<std::int32_t>> messages_of;  ///< what each endpoint sends or receives in every repetition
};

class StepsRun final : public CollectiveRun {
 public:
  StepsRun(const std::vector<StepsPhase>& phases, const CollectiveRun::Context& context)
      : phases_(phases), context_(context) {}

  void begin(Seconds now) override { begin_phase(0, now); }

  void start_flows(std::int32_t part, Seconds now) override {
    if (part == phase_is_over) return begin_phase(phase_ + 1, now);
    context_.flows.start(phase().messages[static_cast<std::size_t>(part)].set, 1, now, context_.task, part,
                         context_.events);
  }

  void end_flows(std::int32_t part, Seconds now) override {
    const Message& message = phase().messages[static_cast<std::size_t>(part)];
    ends_ready_[static_cast<std::size_t>(part)] = 0;
    finish_message(message.source, now);
    if (message.ends() == 2) finish_message(message.destination, now);
    if (active_ == 0) begin_phase(phase_ + 1, now);
  }

  [[nodiscard]] bool finished() const override { return phase_ == phases_.size(); }

 private:
  static constexpr std::int32_t phase_is_over = -1;  ///< the `part` of a phase that has no messages

  struct EndpointState {
    int repetition = 0;
    std::size_t unfinished = 0;  ///< messages of this repetition
  };

  [[nodiscard]] const StepsPhase& phase() const { return phases_[phase_]; }

  void begin_phase(std::size_t number, Seconds now) {
    phase_ = number;
    if (finished()) return;
    if (phase().messages.empty()) {
      const Seconds end = now + phase().latency * phase().repeat;
      context_.events.push({end, Event::Kind::flows_start, context_.task, phase_is_over});
      return;
    }
    active_ = phase().messages_of.size();
    endpoints_.assign(active_, {});
    ends_ready_.assign(phase().messages.size(), 0);
    for (Endpoint endpoint = 0; std::cmp_less(endpoint, active_); ++endpoint) begin_repetition(endpoint, now);
  }

  void begin_repetition(Endpoint endpoint, Seconds now) {
    const auto& messages = phase().messages_of[static_cast<std::size_t>(endpoint)];
    endpoints_[static_cast<std::size_t>(endpoint)].unfinished = messages.size();
    for (const std::int32_t number : messages) {
      if (++ends_ready_[static_cast<std::size_t>(number)] ==
          phase().messages[static_cast<std::size_t>(number)].ends()) {
        context_.events.push({now + phase().latency, Event::Kind::flows_start, context_.task, number});
      }
    }
  }

  void finish_message(Endpoint endpoint, Seconds now) {
    EndpointState& state = endpoints_[static_cast<std::size_t>(endpoint)];
    if (--state.unfinished > 0) return;
    if (++state.repetition < phase().repeat) {
      begin_repetition(endpoint, now);
    } else {
      --active_;
    }
  }

  const std::vector<StepsPhase>& phases_;
  CollectiveRun::Context context_;
  std::size_t phase_ = 0;
  std::vector<EndpointState> endpoints_;
  std::vector<int> ends_ready_;  ///< per message: how many of its ends have reached its repetition
  std::size_t active_ = 0;       ///< endpoints with repetitions left
};

class StepsProgram final : public CollectiveProgram {
 public:
  explicit StepsProgram(std::vector<StepsPhase> phases) : phases_(std::move(phases)) {}
  [[nodiscard]] std::unique_ptr<CollectiveRun> run(const CollectiveRun::Context& context) const override {
    return std::make_unique<StepsRun>(phases_, context);
  }

 private:
  std::vector<StepsPhase> phases_;
};

StepsPhase make_phase(const LoweredCollective::Phase& lowered, NetworkPlan& plan) {
  std::map<EndpointId, Endpoint> endpoints;
  const auto local = [&](EndpointId endpoint) {
    return endpoints.try_emplace(endpoint, static_cast<Endpoint>(endpoints.size())).first->second;
  };
  StepsPhase phase{lowered.latency, lowered.repeat, {}, {}};
  for (const Flow& flow : merge_by_ends(lowered.flows)) {
    const auto number = static_cast<std::int32_t>(phase.messages.size());
    const Endpoint source = local(flow.source);
    const Endpoint destination = local(flow.destination);
    phase.messages.push_back({source, destination, plan.add_set({flow})});
    phase.messages_of.resize(endpoints.size());
    phase.messages_of[static_cast<std::size_t>(source)].push_back(number);
    if (source != destination) phase.messages_of[static_cast<std::size_t>(destination)].push_back(number);
  }
  return phase;
}

}  // namespace

std::unique_ptr<CollectiveProgram> make_steps_program(const LoweredCollective& lowered, NetworkPlan& plan) {
  std::vector<StepsPhase> phases;
  for (const LoweredCollective::Phase& phase : lowered.phases) phases.push_back(make_phase(phase, plan));
  return std::make_unique<StepsProgram>(std::move(phases));
}

}  // namespace foretrain
