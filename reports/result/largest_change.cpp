#include "reports/result/largest_change.hpp"

#include <cmath>

#include "model/base/format.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

/// Communication with the largest additional exposure.
std::string worst_communication(const TrainResult& now, const TrainResult& before) {
  std::string worst;
  Seconds most;
  for (const auto& [name, time] : now.communication) {
    const auto known = before.communication.find(name);
    const Seconds more = time.exposed - (known == before.communication.end() ? Seconds(0.0) : known->second.exposed);
    if (more > most) {
      most = more;
      worst = name;
    }
  }
  return worst.empty() ? "exposed communication" : "exposed " + worst;
}

}  // namespace

LargestChange largest_change(const TrainResult& now, const TrainResult& before) {
  const double samples = now.samples_per_second * now.step_time.value();
  const double steps = samples > 0.0 ? before.samples_per_second * before.step_time.value() / samples : 1.0;
  const double sign = now.step_time * steps < before.step_time ? -1.0 : 1.0;
  const auto change = [&](const BreakdownPart& part) {
    return now.breakdown.*part.time * steps - before.breakdown.*part.time;
  };
  const BreakdownPart* most = &breakdown_parts.front();
  for (const BreakdownPart& part : breakdown_parts) {
    if (sign * change(part) > sign * change(*most)) most = &part;
  }
  const bool waits_more = most->time == &Breakdown::exposed_communication && sign > 0.0;
  return {most->time, waits_more ? worst_communication(now, before) : std::string(most->name), change(*most)};
}

std::string signed_seconds(Seconds time) {
  return (time < Seconds(0.0) ? "-" : "+") + format_seconds(Seconds(std::abs(time.value())));
}

}  // namespace foretrain
