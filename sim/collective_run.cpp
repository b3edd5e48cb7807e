#include "sim/collective_run.hpp"

#include <map>
#include <utility>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

constexpr std::int32_t phase_is_over = -1;  ///< the `part` of a phase that has no messages

CollectiveProgram::Phase steps_of(const LoweredCollective::Phase& lowered, NetworkPlan& plan) {
  std::map<EndpointId, std::int32_t> ends;
  const auto local = [&](EndpointId end) {
    return ends.try_emplace(end, static_cast<std::int32_t>(ends.size())).first->second;
  };
  CollectiveProgram::Phase phase{lowered.latency, lowered.repeat, {}, {}};
  for (const Flow& flow : merge_by_ends(lowered.flows)) {
    const auto number = static_cast<std::int32_t>(phase.messages.size());
    const std::int32_t source = local(flow.source), destination = local(flow.destination);
    phase.messages.push_back({source, destination, plan.add({flow})});
    phase.messages_of.resize(ends.size());
    phase.messages_of[at_index(source)].push_back(number);
    if (source != destination) phase.messages_of[at_index(destination)].push_back(number);
  }
  return phase;
}

}  // namespace

CollectiveProgram flows_program(const LoweredCollective& lowered, NetworkPlan& plan) {
  CollectiveProgram program;
  const auto phases = lowered.phases.once();
  for (const LoweredCollective::Phase& phase : phases) {
    NetworkPlan::Amount amount = plan.add(phase.flows);
    amount.times *= phase.repeat;
    const CollectiveProgram::Message all{0, 0, amount};
    program.phases.push_back({phase.latency * phase.repeat, 1, {all}, {{0}}});
  }
  return program;
}

CollectiveProgram steps_program(const LoweredCollective& lowered, NetworkPlan& plan) {
  CollectiveProgram program;
  for (const LoweredCollective::Phase& phase : lowered.phases) program.phases.push_back(steps_of(phase, plan));
  return program;
}

void CollectiveRun::start_flows(std::int32_t part, Seconds now) {
  if (part == phase_is_over) return begin_phase(phase_ + 1, now);
  flows_.start(phase().messages[at_index(part)].amount, now, task_, part, events_);
}

void CollectiveRun::end_flows(std::int32_t part, Seconds now) {
  const CollectiveProgram::Message& message = phase().messages[at_index(part)];
  ends_ready_[at_index(part)] = 0;
  finish_message(message.source, now);
  if (message.ends() == 2) finish_message(message.destination, now);
  if (active_ == 0) begin_phase(phase_ + 1, now);
}

void CollectiveRun::begin_phase(std::size_t number, Seconds now) {
  phase_ = number;
  if (finished()) return;
  if (phase().messages.empty()) {
    events_.push({now + phase().latency * phase().repeat, Event::Kind::flows_start, task_, phase_is_over});
    return;
  }
  active_ = phase().messages_of.size();
  ends_.assign(active_, {});
  ends_ready_.assign(phase().messages.size(), 0);
  for (std::int32_t end = 0; std::cmp_less(end, active_); ++end) begin_repetition(end, now);
}

void CollectiveRun::begin_repetition(std::int32_t end, Seconds now) {
  const std::vector<std::int32_t>& messages = phase().messages_of[at_index(end)];
  ends_[at_index(end)].unfinished = messages.size();
  for (const std::int32_t number : messages) {
    if (++ends_ready_[at_index(number)] < phase().messages[at_index(number)].ends()) continue;
    events_.push({now + phase().latency, Event::Kind::flows_start, task_, number});
  }
}

void CollectiveRun::finish_message(std::int32_t end, Seconds now) {
  End& state = ends_[at_index(end)];
  if (--state.unfinished > 0) return;
  if (++state.repetition < phase().repeat) {
    begin_repetition(end, now);
  } else {
    --active_;
  }
}

}  // namespace foretrain
