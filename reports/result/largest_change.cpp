#include "reports/result/largest_change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/format.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

/// Communication of which `time` grows most; empty where none does.
std::pair<std::string, Seconds> grown_most(const TrainResult& now, const TrainResult& before,
                                           Seconds CommunicationTime::*time) {
  std::pair<std::string, Seconds> most;
  for (const auto& [name, times] : now.communication) {
    const auto known = before.communication.find(name);
    const Seconds more = times.*time - (known == before.communication.end() ? Seconds(0.0) : known->second.*time);
    if (more > most.second) most = {name, more};
  }
  return most;
}

}  // namespace

LargestChange largest_change(const TrainResult& now, const TrainResult& before) {
  const double samples = now.samples_per_second * now.step_time.value();
  const double steps = samples > 0.0 ? before.samples_per_second * before.step_time.value() / samples : 1.0;
  const double sign = now.step_time * steps < before.step_time ? -1.0 : 1.0;
  const auto change = [&](const BreakdownPart& part) {
    return now.breakdown.*part.time * steps - before.breakdown.*part.time;
  };
  const auto signed_change = [&](const BreakdownPart& part) { return sign * change(part); };
  const auto most = std::ranges::max_element(breakdown_parts, {}, signed_change);
  const auto least = std::ranges::min_element(breakdown_parts, {}, signed_change);
  LargestChange found{most->time, std::string(most->name), change(*most)};
  const Seconds notable = 0.5 * sign * found.time;
  if (-sign * change(*least) > notable)
    found.also = fmt::format(", {} {}", least->name, signed_seconds(change(*least)));
  if (sign < 0.0) return found;
  if (most->time == &Breakdown::exposed_communication) {
    const std::string worst = grown_most(now, before, &CommunicationTime::exposed).first;
    if (!worst.empty()) found.name = "exposed " + worst;
  } else if (most->time == &Breakdown::pipeline_bubble) {
    const auto [cause, more] = grown_most(now, before, &CommunicationTime::total);
    if (more > notable && cause.starts_with("gradient"))
      found.also += fmt::format(" (total {} {})", cause, signed_seconds(more));
  }
  return found;
}

std::string signed_seconds(Seconds time) {
  return (time < Seconds(0.0) ? "-" : "+") + format_seconds(Seconds(std::abs(time.value())));
}

}  // namespace foretrain
