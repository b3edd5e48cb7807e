// The critical path of an execution.
#include <algorithm>
#include <functional>
#include <map>

#include "reports/explain/explanation.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

Seconds end_of(const TimelineEntry& entry) { return entry.start + entry.duration; }

/// Transfers by their own name, everything else by its kind: a layer's kernels are many.
std::string part_of(const TimelineEntry& entry) {
  return entry.category == "communication" || entry.category.empty() ? entry.name : entry.category;
}

/// Without those that nobody would see.
std::vector<PathPart> longest_first(const std::map<std::string, Seconds>& times, Seconds whole) {
  std::vector<PathPart> parts;
  for (const auto& [name, time] : times) {
    if (time >= 1e-6 * whole) parts.push_back({name, time});
  }
  std::ranges::stable_sort(parts, std::ranges::greater{}, &PathPart::time);
  return parts;
}

}  // namespace

std::vector<PathPart> chain_of_step(const TrainResult& train) {
  std::map<std::string, Seconds> times;
  Seconds waits = train.breakdown.exposed_communication;
  for (const auto& [name, time] : train.communication) {
    times[name] = time.exposed;
    waits -= time.exposed;
  }
  for (const BreakdownPart& part : breakdown_parts) {
    const bool reported = part.time == &Breakdown::exposed_communication && !train.communication.empty();
    times[std::string(part.name)] += reported ? waits : train.breakdown.*part.time;
  }
  return longest_first(times, train.step_time);
}

std::vector<PathPart> critical_path(const std::vector<TimelineEntry>& timeline) {
  if (timeline.empty()) return {};
  std::map<std::string, Seconds> times;
  const auto last = std::ranges::max_element(timeline, {}, end_of);
  auto at = static_cast<std::size_t>(last - timeline.begin());
  for (;;) {
    const TimelineEntry& entry = timeline[at];
    times[part_of(entry)] += entry.duration;
    std::vector<std::size_t> before = entry.after;
    // Entries are in order of resources and starts: what ran before it on its resource stands before it.
    if (at > 0 && timeline[at - 1].resource == entry.resource) before.push_back(at - 1);
    std::erase_if(before, [&](std::size_t i) { return end_of(timeline[i]) > entry.start + 1e-9 * end_of(*last); });
    const Seconds start = entry.start;
    if (before.empty()) {
      if (start > Seconds(0.0)) times["waiting"] += start;
      break;
    }
    at = *std::ranges::max_element(before, {}, [&](std::size_t i) { return end_of(timeline[i]); });
    if (start > end_of(timeline[at])) times["waiting"] += start - end_of(timeline[at]);
  }
  return longest_first(times, end_of(*last));
}

}  // namespace foretrain
