#include "reports/measured/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/statistics.hpp"

namespace foretrain {

namespace {

bool can_be_anchored(const Comparison& comparison) {
  return comparison.quantity != "memory_per_gpu" && !comparison.anchored;
}

/// Names of the groups in order of appearance.
std::vector<std::string> group_names(const std::vector<Comparison>& comparisons) {
  std::vector<std::string> names;
  for (const Comparison& c : comparisons) {
    if (std::find(names.begin(), names.end(), c.group) == names.end()) names.push_back(c.group);
  }
  return names;
}

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
  for (const std::string& name : group_names(comparisons)) {
    std::vector<Comparison> members;
    std::copy_if(comparisons.begin(), comparisons.end(), std::back_inserter(members),
                 [&](const Comparison& c) { return c.group == name; });
    GroupAccuracy& group = report.groups.emplace_back(GroupAccuracy{name, {}, 1.0, 0});
    if (anchor > 0) anchor_group(members, anchor, group);
    group.statistics = error_statistics(members);
    report.anchored += group.anchors;
    report.cases.insert(report.cases.end(), members.begin(), members.end());
  }
  report.overall = error_statistics(report.cases);
  return report;
}

}  // namespace foretrain
