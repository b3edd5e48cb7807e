#include "reports/studies/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/parallelism/layout.hpp"
#include "model/workload/build.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

/// Adds operators up by name and precision.
class Points {
 public:
  explicit Points(const Scenario& scenario)
      : scenario_(scenario), compiled_(scenario.plan.execution == ExecutionMode::compiled) {}

  void add(const Operator& op, const std::string& name, double count) {
    const OperatorCost cost = operator_cost(op, scenario_.cluster.node.gpu, scenario_.calibration, compiled_);
    const auto [place, is_new] = index_.emplace(std::pair(name, op.precision), points_.size());
    if (is_new) {
      points_.push_back({name, op.precision, {}, {}, {}, ""});
      longest_.emplace_back();
    }
    RooflinePoint& point = points_[place->second];
    point.flops += cost.flops * count;
    point.bytes += cost.bytes * count;
    point.time += cost.device * count;
    if (cost.device * count > longest_[place->second]) {
      longest_[place->second] = cost.device * count;
      point.bound = std::string(foretrain::name(cost.bound));
    }
  }
  [[nodiscard]] std::vector<RooflinePoint> take() && { return std::move(points_); }

 private:
  const Scenario& scenario_;
  bool compiled_;
  std::vector<RooflinePoint> points_;
  std::vector<Seconds> longest_;
  std::map<std::pair<std::string, Precision>, std::size_t> index_;
};

void add_step(const Scenario& scenario, const TrainWorkload& train, Points& points) {
  const Model model = build_model(train.model, build_options(train, scenario.plan));
  for (const LayerGroup& group : model.layers) {
    for (const Operator& op : group.layer.operators()) points.add(op, op.name, group.repeat);
  }
}

std::vector<RooflinePoint> points_of(const Scenario& scenario) {
  Points points(scenario);
  if (const auto* op = std::get_if<OperatorWorkload>(&scenario.workload)) {
    points.add(op->op, scenario.name, op->repeat);
  } else if (const auto* tasks = std::get_if<TasksWorkload>(&scenario.workload)) {
    for (const ScenarioTask& task : tasks->tasks) {
      if (const auto* work = std::get_if<Operator>(&task.work)) points.add(*work, task.id, task.repeat);
    }
  } else if (const auto* train = std::get_if<TrainWorkload>(&scenario.workload)) {
    add_step(scenario, *train, points);
  } else {
    throw UsageError(scenario.name + ": plot roofline needs an operator, tasks or training");
  }
  return std::move(points).take();
}

/// Precisions whose products the chip has units for, those of one rate and kind together.
std::vector<Roof> roofs_of(const Gpu& gpu) {
  std::vector<Roof> roofs;
  for (int p = 0; p < precision_count; ++p) {
    const auto precision = static_cast<Precision>(p);
    if (gpu.arithmetic_precision(precision) != precision) continue;
    const FlopsPerSecond rate = gpu.matrix_rate(precision);
    const auto same = std::find_if(roofs.begin(), roofs.end(), [&](const Roof& roof) { return roof.rate == rate; });
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
    auto panel = std::find_if(figure.panels.begin(), figure.panels.end(),
                              [&](const RooflinePanel& p) { return p.gpu == gpu.name; });
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
