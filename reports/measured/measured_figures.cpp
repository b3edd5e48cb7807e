#include "reports/measured/measured_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>

#include "model/base/error.hpp"
#include "model/base/words.hpp"
#include "model/collectives/collective.hpp"
#include "model/cost/operator_cost.hpp"

namespace foretrain {

namespace {

constexpr double giga = 1e9;

/// A panel on logarithmic axes that gets its points one by one.
class Curves {
 public:
  /// Without lines where `dots_alone`. Sizes along x are in bytes where `binary`.
  Curves(std::string title, std::string x, std::string y, bool binary = true, bool dots_alone = false)
      : width_(dots_alone ? 0.0 : 1.5) {
    panel_ = {.title = std::move(title), .width = 456, .height = 278};
    panel_.x = {.name = std::move(x), .logarithmic = true, .binary = binary};
    panel_.y = {.name = std::move(y), .logarithmic = true, .grid = true};
  }

  /// Series stand in the order of their first points.
  void add(const std::string& name, double x, double y) {
    if (!(x > 0.0) || !(y > 0.0)) return;
    auto series = std::ranges::find(panel_.series, name, &Series::name);
    if (series == panel_.series.end()) {
      series = panel_.series.insert(series, {.name = name, .line = width_, .dot = Dot::own, .dot_size = 0.45});
    }
    series->points.push_back({x, y});
  }
  void add_level(double at, const std::string& name) { panel_.levels.push_back({.at = at, .name = name}); }

  Panel take() && {
    for (Series& series : panel_.series)
      std::ranges::sort(series.points, {}, [](const Point& p) { return std::pair(p.x, p.y); });
    return std::move(panel_);
  }

 private:
  Panel panel_;
  double width_;
};

/// Two panels a row.
Figure figure_of(std::vector<Panel> panels) {
  std::erase_if(panels, [](const Panel& panel) { return panel.series.empty(); });
  if (panels.empty()) throw UsageError("nothing of this kind was measured: there is nothing to draw");
  return {.panels = std::move(panels), .columns = 2};
}

double number(const RawPoint& point, const std::string& key) {
  return std::strtod(point.parameter(key).c_str(), nullptr);
}

std::string side_class(std::int64_t shortest) {
  if (shortest < 64) return "shortest side below 64";
  if (shortest < 512) return "64 to 511";
  return shortest < 2048 ? "512 to 2047" : "2048 and more";
}

double gemm_work(const Matmul& work) {
  return 2.0 * static_cast<double>(work.batch) * static_cast<double>(work.m) * static_cast<double>(work.n) *
         static_cast<double>(work.k);
}

Panel device_memory(const std::vector<PredictedPoint>& points) {
  Curves curves("Device memory, cold operands", "bytes moved", "GB/s");
  for (const PredictedPoint& point : points) {
    if (!point.op || point.cache == "warm") continue;
    if (point.raw->record.suite != "memory" && point.raw->record.suite != "streaming") continue;
    const auto* pass = std::get_if<Streaming>(&point.op->op.work);
    if (pass == nullptr) continue;
    const Bytes bytes = pass->read + pass->written;
    const bool reads = pass->read > Bytes(0.0), writes = pass->written > Bytes(0.0);
    const std::string method = point.raw->parameter("method");
    const std::string name = reads && writes ? (method.empty() ? "copy" : "copy, " + method) : reads ? "read" : "write";
    curves.add(name, bytes.value(), bytes / point.measured / BytesPerSecond(giga));
  }
  if (!points.empty()) {
    curves.add_level(points.front().scenario.cluster.node.gpu.memory_bandwidth.value() / giga, "peak of device memory");
  }
  return std::move(curves).take();
}

Panel walks(const std::vector<PredictedPoint>& points, bool chains) {
  Curves curves(chains ? "Pointer chase" : "Reads by working set", "working set", chains ? "ns per load" : "GB/s");
  for (const PredictedPoint& point : points) {
    const auto* walk = point.op ? std::get_if<MemoryAccess>(&point.op->op.work) : nullptr;
    if (walk == nullptr || (walk->pattern == AccessPattern::dependent) != chains) continue;
    if (chains) {
      curves.add("measured", walk->working_set.value(), point.measured.value() / walk->reads * 1e9);
      curves.add("model", walk->working_set.value(),
                 predicted_time(point, point.scenario.calibration).value() / walk->reads * 1e9);
      continue;
    }
    if (walk->pattern == AccessPattern::strided) continue;
    const std::string name =
        fmt::format("{} reads of {:.0f} B", walk->pattern == AccessPattern::random ? "random" : "sequential",
                    walk->element.value());
    curves.add(name, walk->working_set.value(), walk->element.value() * walk->reads / point.measured.value() / giga);
  }
  return std::move(curves).take();
}

Panel copies(const RawMeasurements& raw, bool latency) {
  Curves curves(latency ? "Host and device: one copy and its wait" : "Host and device: many copies in a row", "bytes",
                latency ? "us" : "GB/s");
  for (const RawPoint* point : raw.of_suite("copy")) {
    if (point->parameter("what") != "host_copy") continue;
    const bool one_call = point->parameter("timing") == "host";
    if (one_call != latency) continue;
    const double bytes = number(*point, "bytes");
    const double ways = point->parameter("direction") == "both" ? 2.0 : 1.0;
    const std::string name = point->parameter("memory") + " " + point->parameter("direction");
    curves.add(name, bytes, latency ? point->median() * 1e6 : bytes * ways / point->median() / giga);
  }
  return std::move(curves).take();
}

Panel peers(const RawMeasurements& raw) {
  Curves curves("Between GPUs", "bytes", "GB/s");
  for (const RawPoint* point : raw.of_suite("peer")) {
    if (point->parameter("timing") != "stream") continue;
    const double bytes = number(*point, "bytes");
    const bool both = point->parameter("direction") == "both";
    const std::string name =
        fmt::format("{}{}{}{}", point->parameter("source"), both ? "<->" : "->", point->parameter("destination"),
                    point->parameter("peer_access") == "off" ? " through the host" : "");
    curves.add(name, bytes, bytes * (both ? 2.0 : 1.0) / point->median() / giga);
  }
  Panel panel = std::move(curves).take();
  constexpr std::size_t most = 12;  // further pairs look the same
  if (panel.series.size() > most) panel.series.resize(most);
  return panel;
}

}  // namespace

Figure gemm_figure(const RawMeasurements& /*raw*/, const std::vector<PredictedPoint>& points) {
  std::vector<Panel> panels;
  for (int p = 0; p < precision_count; ++p) {
    const auto precision = static_cast<Precision>(p);
    Curves curves(fmt::format("Matrix products, {}", name(precision)), "GFLOP of one product", "TFLOP/s", false, true);
    // Classes in their own order, whatever the order of the points.
    for (const std::int64_t least : {std::int64_t{1}, std::int64_t{64}, std::int64_t{512}, std::int64_t{2048}}) {
      for (const PredictedPoint& point : points) {
        const auto* work = point.op ? std::get_if<Matmul>(&point.op->op.work) : nullptr;
        if (work == nullptr || point.op->op.precision != precision) continue;
        const std::int64_t shortest = std::min({work->m, work->n, work->k});
        if (side_class(shortest) != side_class(least)) continue;
        const double seconds = point.measured.value() / point.op->repeat;
        curves.add(side_class(shortest), gemm_work(*work) * 1e-9, gemm_work(*work) / seconds * 1e-12);
      }
    }
    if (!points.empty()) {
      curves.add_level(points.front().scenario.cluster.node.gpu.matrix_rate(precision).value() * 1e-12, "peak");
    }
    panels.push_back(std::move(curves).take());
  }
  return figure_of(std::move(panels));
}

Figure bandwidth_figure(const RawMeasurements& raw, const std::vector<PredictedPoint>& points) {
  return figure_of({device_memory(points), walks(points, false), walks(points, true), copies(raw, false),
                    copies(raw, true), peers(raw)});
}

Figure bus_bandwidth_figure(const RawMeasurements& /*raw*/, const std::vector<PredictedPoint>& points) {
  std::vector<Panel> panels;
  for (std::size_t i = 0; i < names_of<CollectiveOperation>.size(); ++i) {
    const auto operation = static_cast<CollectiveOperation>(i);
    Curves curves(std::string(name(operation)), "message", "bus bandwidth (GB/s)");
    for (const PredictedPoint& point : points) {
      const auto* collective = std::get_if<CollectiveWorkload>(&point.scenario.workload);
      if (collective == nullptr || collective->operation != operation) continue;
      const double factor = bus_bandwidth_factor(collective->operation, collective->ranks);
      const auto rate = [&](Seconds time) { return collective->size / time * factor / BytesPerSecond(giga); };
      const std::string gpus = fmt::format("{} GPUs", collective->ranks);
      curves.add(gpus, collective->size.value(), rate(point.measured));
      curves.add(gpus + ", model", collective->size.value(), rate(predicted_time(point, point.scenario.calibration)));
    }
    panels.push_back(std::move(curves).take());
  }
  return figure_of(std::move(panels));
}

RooflineFigure measured_roofline(const std::vector<PredictedPoint>& points) {
  std::vector<Scenario> scenarios;
  std::map<std::string, Seconds> times;
  for (const PredictedPoint& point : points) {
    if (!point.op) continue;
    scenarios.push_back(point.scenario);
    scenarios.back().name = point.raw->record.suite + ": " + point.raw->record.name;
    times[scenarios.back().name] = point.measured;
  }
  RooflineFigure figure = roofline_figure(scenarios);
  for (RooflinePanel& panel : figure.panels) {
    for (RooflinePoint& point : panel.points) point.time = times.at(point.name);
    std::stable_sort(panel.points.begin(), panel.points.end(),
                     [](const RooflinePoint& a, const RooflinePoint& b) { return a.time > b.time; });
  }
  return figure;
}

AccuracyReport measured_accuracy(const GpuCalibration& fit) {
  std::vector<Comparison> comparisons;
  for (const PointPair& pair : fit.pairs) {
    comparisons.push_back({pair.name, pair.group + (pair.held_out ? ", held out" : ""), "time", pair.measured.value(),
                           pair.predicted.value()});
  }
  return accuracy_report(comparisons, {}, 0);
}

Figure error_distribution(const GpuCalibration& fit) {
  std::map<std::string, std::vector<double>> errors;
  for (const PointPair& pair : fit.pairs) {
    errors[pair.family + (pair.held_out ? ", held out" : "")].push_back(
        std::max(1e-4, std::abs(pair.predicted / pair.measured - 1.0)));
  }
  Panel panel{.title = "Points predicted at least so well", .width = 456, .height = 278};
  panel.x = {.name = "error (%)", .logarithmic = true};
  panel.y = {.name = "share of the points (%)", .grid = true};
  for (auto& [family, values] : errors) {
    std::ranges::sort(values);
    Series series{
        .name = fmt::format("{} ({})", family, values.size()), .line = 1.5, .dot = Dot::own, .dot_size = 0.45};
    const auto share = 100.0 / static_cast<double>(values.size());
    for (const double error : values) {
      series.points.push_back({error * 100.0, share * static_cast<double>(series.points.size() + 1)});
    }
    panel.series.push_back(std::move(series));
  }
  return figure_of({std::move(panel)});
}

}  // namespace foretrain
