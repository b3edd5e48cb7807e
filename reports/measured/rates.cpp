#include "reports/measured/rates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/collectives/collective.hpp"
#include "reports/measured/measured.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

/// How large one run is, and what all of them do in the time that is measured: in the unit of sizes.
struct RateWork {
  double size = 0.0, done = 0.0;
};

RateWork work_of(const Scenario& scenario) {
  if (const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload)) {
    const double size = collective->size.value();
    return {size, size * bus_bandwidth_factor(collective->operation, collective->ranks / collective->groups)};
  }
  const auto& workload = std::get<OperatorWorkload>(scenario.workload);
  const double size = flops(workload.op).value();
  return {size, size * workload.repeat};
}

std::string series_name(const Scenario& scenario) {
  if (const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload)) {
    return spoken(std::string(name(collective->operation)));
  }
  const Operator& op = std::get<OperatorWorkload>(scenario.workload).op;
  const auto* attention = std::get_if<Attention>(&op.work);
  if (attention == nullptr) return std::string(name(op.precision));
  const std::string algorithm = spoken(std::string(name(attention->kind)));
  if (attention->cached) return "engine's " + algorithm;
  return fmt::format("{}, {}", algorithm, attention->backward ? "backward" : "forward");
}

/// The row's base and cells without the message.
std::string setting_of(const Case& row) {
  std::string setting = row.base;
  for (const Override& cell : row.overrides) {
    if (cell.key != "workload.collective.size") setting += fmt::format("\n{}={}", cell.key, cell.value);
  }
  return setting;
}

}  // namespace

bool is_of(RateKind kind, const Scenario& scenario) {
  if (scenario.cluster.node.gpu.architecture == "host") return false;  // processes, each with a processor
  if (kind == RateKind::collectives) return std::holds_alternative<CollectiveWorkload>(scenario.workload);
  const auto* workload = std::get_if<OperatorWorkload>(&scenario.workload);
  if (workload == nullptr) return false;
  return kind == RateKind::products ? std::holds_alternative<Matmul>(workload->op.work)
                                    : std::holds_alternative<Attention>(workload->op.work);
}

void add_case(RateFigure& figure, const Case& row, const Scenario& scenario, const Result& result) {
  const std::vector<Comparison> comparisons = compare(row, result);
  const Cluster& cluster = scenario.cluster;
  RateSeries& series = figure.panels[{cluster.node.name, cluster.nodes}][series_name(scenario)];
  std::vector<RatePoint>& points = series[figure.kind == RateKind::collectives ? setting_of(row) : ""];
  const auto [size, done] = work_of(scenario);
  for (const Comparison& c : comparisons) {
    const bool rates = is_rate(c.quantity);
    const RatePoint point{size, rates ? c.measured : done / c.measured, rates ? c.predicted : done / c.predicted};
    points.insert(std::ranges::upper_bound(points, size, {}, &RatePoint::size), point);
  }
}

}  // namespace foretrain
