#include "reports/studies/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/parallelism/layout.hpp"
#include "model/workload/build.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

/// Adds an operator to those of its name and precision.
void add(std::vector<RooflinePoint>& points, const Scenario& scenario, const Operator& op, const std::string& name,
         double count) {
  const bool compiled = scenario.plan.execution == ExecutionMode::compiled;
  const OperatorCost cost = operator_cost(op, scenario.cluster.node.gpu, scenario.calibration, compiled);
  auto point = std::ranges::find_if(
      points, [&](const RooflinePoint& one) { return one.name == name && one.precision == op.precision; });
  if (point == points.end()) point = points.insert(point, {name, op.precision, {}, {}, {}, ""});
  point->flops += cost.flops * count;
  point->bytes += cost.bytes * count;
  point->time += cost.device * count;
  if (cost.device * count > point->longest) {
    point->longest = cost.device * count;
    point->bound = std::string(foretrain::name(cost.bound));
  }
}

std::vector<RooflinePoint> points_of(const Scenario& scenario) {
  std::vector<RooflinePoint> points;
  if (const auto* op = std::get_if<OperatorWorkload>(&scenario.workload)) {
    add(points, scenario, op->op, scenario.name, op->repeat);
  } else if (const auto* tasks = std::get_if<TasksWorkload>(&scenario.workload)) {
    for (const ScenarioTask& task : tasks->tasks) {
      if (const auto* work = std::get_if<Operator>(&task.work)) add(points, scenario, *work, task.id, task.repeat);
    }
  } else if (const auto* train = std::get_if<TrainWorkload>(&scenario.workload)) {
    const Model model = build_model(train->model, build_options(*train, scenario.plan));
    for (const LayerGroup& group : model.layers) {
      for (const Operator& one : group.layer.operators()) add(points, scenario, one, one.name, group.repeat);
    }
  } else {
    throw UsageError(scenario.name + ": plot roofline needs an operator, tasks or training");
  }
  return points;
}

/// Precisions whose products the chip has units for, those of one rate and kind together.
std::vector<Roof> roofs_of(const Gpu& gpu) {
  std::vector<Roof> roofs;
  for (int p = 0; p < precision_count; ++p) {
    const auto precision = static_cast<Precision>(p);
    if (gpu.arithmetic_precision(precision) != precision) continue;
    const FlopsPerSecond rate = gpu.matrix_rate(precision);
    const auto same = std::ranges::find_if(roofs, [&](const Roof& roof) { return roof.rate == rate; });
    if (same == roofs.end()) {
      roofs.push_back({std::string(name(precision)), rate});
    } else {
      same->name += ", " + std::string(name(precision));
    }
  }
  std::stable_sort(roofs.begin(), roofs.end(), [](const Roof& a, const Roof& b) { return a.rate > b.rate; });
  return roofs;
}

RooflinePanel panel_of(const Gpu& gpu) {
  RooflinePanel panel{gpu.name, gpu.memory_bandwidth, roofs_of(gpu), {}, {}};
  for (int p = 0; p < precision_count; ++p) {
    panel.peaks.emplace_back(static_cast<Precision>(p), gpu.matrix_rate(static_cast<Precision>(p)));
  }
  return panel;
}

}  // namespace

FlopsPerSecond RooflinePanel::roof_over(const RooflinePoint& point) const {
  return std::min(peaks[static_cast<std::size_t>(point.precision)].second, point.intensity() * bandwidth);
}

RooflineFigure roofline_figure(const std::vector<Scenario>& scenarios) {
  RooflineFigure figure;
  for (const Scenario& scenario : scenarios) {
    const Gpu& gpu = scenario.cluster.node.gpu;
    auto panel = std::ranges::find_if(figure.panels, [&](const RooflinePanel& p) { return p.gpu == gpu.name; });
    if (panel == figure.panels.end()) panel = figure.panels.insert(figure.panels.end(), panel_of(gpu));
    const std::vector<RooflinePoint> points = points_of(scenario);
    panel->points.insert(panel->points.end(), points.begin(), points.end());
  }
  for (RooflinePanel& panel : figure.panels) {
    std::stable_sort(panel.points.begin(), panel.points.end(),
                     [](const RooflinePoint& a, const RooflinePoint& b) { return a.time > b.time; });
  }
  return figure;
}

std::string to_text(const RooflineFigure& figure) {
  std::string text;
  for (const RooflinePanel& panel : figure.panels) {
    TextTable table("llrrrrl", {"operator", "precision", "time", "FLOP/byte", "TFLOP/s", "of the roof", "bound"});
    for (const RooflinePoint& point : panel.points) {
      const bool drawn = point.drawable();
      table.add_row({point.name, std::string(name(point.precision)), format_seconds(point.time),
                     drawn ? plain_number(point.intensity().value(), 4) : "-",
                     drawn ? plain_number(point.rate().value() * 1e-12, 4) : "-",
                     drawn ? fmt::format("{:.0f} %", 100.0 * (point.rate() / panel.roof_over(point))) : "-",
                     point.bound});
    }
    text += fmt::format("{}{}: operators beneath its roofs\n\n{}", text.empty() ? "" : "\n", panel.gpu, table.text(2));
  }
  return text;
}

}  // namespace foretrain
