#include "reports/measured/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "model/base/statistics.hpp"

namespace foretrain {

bool is_memory(const std::string& quantity) { return quantity == "memory_per_gpu"; }

namespace {

bool can_be_anchored(const Comparison& comparison) { return !is_memory(comparison.quantity) && !comparison.anchored; }

/// Takes the anchors out of the group's `members` and scales what stays.
void anchor_group(std::vector<Comparison>& members, int anchor, GroupAccuracy& group) {
  std::vector<double> ratios;
  std::vector<Comparison> rest;
  for (Comparison& c : members) {
    if (can_be_anchored(c) && static_cast<int>(ratios.size()) < anchor) {
      ratios.push_back(1.0 / (1.0 + c.error()));
    } else {
      rest.push_back(std::move(c));
    }
  }
  members = std::move(rest);
  if (ratios.empty()) return;
  group.anchors = static_cast<int>(ratios.size());
  group.factor = median(std::move(ratios));
  for (Comparison& c : members) {
    if (can_be_anchored(c)) c.predicted *= is_rate(c.quantity) ? 1.0 / group.factor : group.factor;
  }
}

}  // namespace

ErrorStatistics error_statistics(const std::vector<Comparison>& comparisons) {
  ErrorStatistics result;
  if (comparisons.empty()) return result;
  result.n = static_cast<int>(comparisons.size());
  std::vector<double> absolute;
  for (const Comparison& c : comparisons) {
    const double error = c.error();
    absolute.push_back(std::abs(error));
    result.mape += std::abs(error) / result.n;
    result.bias += error / result.n;
    if (result.worst_case.empty() || std::abs(error) > std::abs(result.worst)) {
      result.worst = error;
      result.worst_case = c.name;
    }
  }
  result.median_error = median(std::move(absolute));
  const auto with_interval =
      std::ranges::count_if(comparisons, [](const Comparison& c) { return c.covered.has_value(); });
  const auto covered =
      std::ranges::count_if(comparisons, [](const Comparison& c) { return c.covered.value_or(false); });
  if (with_interval > 0) result.coverage = static_cast<double>(covered) / static_cast<double>(with_interval);
  return result;
}

AccuracyReport accuracy_report(const std::vector<Comparison>& comparisons, std::vector<FailedCase> failed, int anchor) {
  AccuracyReport report;
  report.failed = std::move(failed);
  std::vector<std::vector<Comparison>> groups;  // in order of appearance
  std::map<std::string, std::size_t> places;
  std::set<std::string> timed;
  for (const Comparison& c : comparisons) {
    if (!is_memory(c.quantity)) timed.insert(c.group);
  }
  for (const Comparison& c : comparisons) {
    const bool apart = is_memory(c.quantity) && timed.contains(c.group);
    const auto [place, is_new] = places.emplace(c.group + (apart ? " memory" : ""), groups.size());
    if (is_new) report.groups.push_back({.name = place->first, .statistics = {}});
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(c);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    GroupAccuracy& group = report.groups[i];
    std::vector<Comparison>& members = groups[i];
    if (anchor > 0) anchor_group(members, anchor, group);
    group.statistics = error_statistics(members);
    report.anchored += group.anchors;
    report.cases.insert(report.cases.end(), members.begin(), members.end());
  }
  report.overall = error_statistics(report.cases);
  std::vector<Comparison> apart = report.cases;
  const auto memory =
      std::ranges::stable_partition(apart, [](const Comparison& c) { return !is_memory(c.quantity); }).begin();
  report.times = error_statistics({apart.begin(), memory});
  report.memory = error_statistics({memory, apart.end()});
  return report;
}

}  // namespace foretrain
