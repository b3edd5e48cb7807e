#include "reports/measured/rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

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

constexpr Point gap_in_line = {0.0, std::numeric_limits<double>::quiet_NaN()};

/// What kinds call their sizes, in the order of RateKind.
constexpr std::array<const char*, 3> size_words = {"FLOP of one product", "FLOP of one pass", "message"};

/// The values of one kind in all series.
std::vector<double> values_of(const RatePanel& panel, double RatePoint::*value) {
  std::vector<double> values;
  for (const auto& [name, series] : panel) {
    for (const auto& [setting, points] : series) {
      for (const RatePoint& point : points) values.push_back(point.*value);
    }
  }
  return values;
}

/// "bf16: 9.0 %, n = 240": the mean error of predicted times, as `validate` has it.
std::string series_text(const std::string& name, const RateSeries& series) {
  double sum = 0.0;
  int n = 0;
  for (const auto& [setting, points] : series) {
    for (const RatePoint& point : points) sum += std::abs(point.measured / point.predicted - 1.0), ++n;
  }
  return fmt::format("{}: {:.1f} %, n = {}", name, 100.0 * sum / n, n);
}

/// The colour of each name, the same in all panels.
std::map<std::string, std::string_view> colours_of(const RateFigure& rates) {
  std::map<std::string, std::string_view> colours;
  for (const auto& [machine, panel] : rates.panels) {
    for (const auto& [name, series] : panel) colours[name] = "";
  }
  std::size_t next = 0;
  for (auto& [name, colour] : colours) colour = palette[next++ % palette.size()];
  return colours;
}

/// The series' points that `take` takes by their setting, with a gap between one setting and the next.
template <typename Take>
std::vector<Point> points_of(const RateSeries& series, double RatePoint::*rate, double unit, Take take) {
  std::vector<Point> drawn;
  for (const auto& [setting, points] : series) {
    if (!take(points)) continue;
    if (!drawn.empty()) drawn.push_back(gap_in_line);
    for (const RatePoint& point : points) drawn.push_back({point.size, point.*rate / unit});
  }
  return drawn;
}

/// From each measured operator to its prediction.
Series strokes_of(const RatePanel& panel, double unit) {
  Series strokes{.colour = "#b4b4b4", .line = 0.8};
  for (const auto& [name, series] : panel) {
    for (const auto& [setting, points] : series) {
      for (const RatePoint& point : points) {
        strokes.points.insert(strokes.points.end(),
                              {{point.size, point.measured / unit}, {point.size, point.predicted / unit}, gap_in_line});
      }
    }
  }
  return strokes;
}

/// The same for all panels, which can then be compared; a decade at least.
Axis size_axis(const RateFigure& rates) {
  double low = std::numeric_limits<double>::infinity(), high = 0.0;
  for (const auto& [machine, panel] : rates.panels) {
    for (const double size : values_of(panel, &RatePoint::size)) low = std::min(low, size), high = std::max(high, size);
  }
  const double room = high / low < 10.0 ? 4.0 : 1.6;
  const bool messages = rates.kind == RateKind::collectives;
  return {.name = size_words.at(static_cast<std::size_t>(rates.kind)),
          .logarithmic = true,
          .low = low / room,
          .high = high * room,
          .unit = messages ? "B" : ""};
}

/// Logarithmic where the machine's rates span decades.
Axis rate_axis(RateKind kind, const RatePanel& panel) {
  std::vector<double> rates = values_of(panel, &RatePoint::measured);
  std::ranges::copy(values_of(panel, &RatePoint::predicted), std::back_inserter(rates));
  const auto [low, high] = std::ranges::minmax(rates);
  Axis axis{.name = "TFLOP a second", .logarithmic = spans_decades(low, high), .grid = true};
  if (kind != RateKind::collectives) return axis;
  axis.name = axis.logarithmic ? "bus bandwidth" : "bus bandwidth (GB/s)";
  if (axis.logarithmic) axis.unit = "B/s";
  return axis;
}

/// Whether predictions of these points are a line; else they are rings.
bool is_curve(RateKind kind, const std::vector<RatePoint>& points) {
  return kind == RateKind::collectives && points.size() > 1;
}

std::string marks_text(RateKind kind, const RatePanel& panel) {
  bool lines = false, rings = false;
  for (const auto& [name, series] : panel) {
    for (const auto& [setting, points] : series) (is_curve(kind, points) ? lines : rings) = true;
  }
  return fmt::format("dots: measured; {}: predicted; mean error", !lines  ? "rings"
                                                                  : rings ? "lines and rings"
                                                                          : "lines");
}

/// Measurements, and over them the predictions of all series.
void add_rates(Panel& panel, RateKind kind, const RatePanel& rates,
               const std::map<std::string, std::string_view>& colours) {
  const bool messages = kind == RateKind::collectives;
  const double unit = !messages ? 1e12 : panel.y.logarithmic ? 1.0 : 1e9;
  const auto curve = [=](const auto& points) { return is_curve(kind, points); };
  if (!messages) panel.series.push_back(strokes_of(rates, unit));
  std::vector<Series> predicted;
  for (const auto& [name, series] : rates) {
    Series dots{.name = series_text(name, series), .colour = colours.at(name), .dot = Dot::own, .dot_size = 0.35};
    Series line{.told = dots.name, .colour = dots.colour, .line = 1.4};
    Series rings{.told = dots.name, .colour = dots.colour, .dot = Dot::ring, .dot_size = 0.55};
    dots.measured = true;
    dots.points = points_of(series, &RatePoint::measured, unit, [](const auto&) { return true; });
    line.points = points_of(series, &RatePoint::predicted, unit, curve);
    rings.points = points_of(series, &RatePoint::predicted, unit, std::not_fn(curve));
    panel.series.push_back(std::move(dots));
    predicted.insert(predicted.end(), {std::move(line), std::move(rings)});
  }
  panel.series.insert(panel.series.end(), predicted.begin(), predicted.end());
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

Figure to_figure(const RateFigure& rates) {
  Figure figure{.columns = 3};
  const std::map<std::string, std::string_view> colours = colours_of(rates);
  for (const auto& [machine, series] : rates.panels) {
    Panel& panel = figure.panels.emplace_back(Panel{.title = machine.node, .width = 330, .height = 260});
    if (machine.nodes > 1) panel.title += fmt::format(", {} nodes", machine.nodes);
    panel.subtitle = marks_text(rates.kind, series);
    panel.x = size_axis(rates);
    panel.y = rate_axis(rates.kind, series);
    add_rates(panel, rates.kind, series, colours);
  }
  return figure;
}

}  // namespace foretrain
