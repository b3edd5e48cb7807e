// The page's part on one scenario.
#include <algorithm>
#include <cctype>

#include "model/base/format.hpp"
#include "model/base/words.hpp"
#include "reports/figure/plot.hpp"
#include "reports/page/page_json.hpp"
#include "reports/print/number.hpp"

namespace foretrain {

std::string without_place(const std::string& error) {
  const std::size_t end = error.find(": ");
  const std::string place = error.substr(0, end);
  const bool is_place = end != std::string::npos && !place.empty() && std::isdigit(place.back()) != 0 &&
                        place.find(':') != std::string::npos && place.find(' ') == std::string::npos;
  return is_place ? error.substr(end + 2) : error;
}

Figure scaling_figure(const ScalingPart& scaling) {
  const ScalingChart& chart = scaling.chart;
  CurveChart costs = chart.throughput(), shares = chart.efficiency();
  std::vector<CurveChart> charts = {chart.steps, costs, shares};
  charts.front().scale = time_scale(span_of(chart.steps.curves, chart.steps.curves.size()).high, "time of a step");
  if (scaling.usd_per_gpu_hour) {
    costs.scale = {"cost of a million samples (USD)", 1.0, format_count};
    for (Curve& curve : costs.curves) {
      for (std::size_t i = 0; i < curve.values.size(); ++i) {
        curve.values[i] = *scaling.usd_per_gpu_hour / 3600.0 * chart.steps.places[i] / curve.values[i] * 1e6;
      }
    }
    charts.push_back(std::move(costs));
  }
  Figure figure;
  for (const CurveChart& one : charts) figure.panels.push_back(to_panel(one, 380, 270));
  return figure;
}

Figure servers_figure(const CurveChart& steps) {
  const auto servers = std::ranges::find(steps.curves, "parameter server", &Curve::name);
  const auto ring = std::ranges::find(steps.curves, "ring", &Curve::name);
  if (servers == steps.curves.end() || ring == steps.curves.end()) return {};
  CurveChart ratio = steps;
  ratio.scale = {"servers ÷ ring", 1.0, [](double times) { return plain_number(times); }};
  ratio.curves = {{"servers ÷ ring", servers->values}};
  for (std::size_t i = 0; i < ring->values.size(); ++i) ratio.curves.front().values[i] /= ring->values[i];
  if (span_of(ratio.curves, 1).high <= 0.0) return {};
  Figure figure{.panels = {to_panel(ratio, 380, 190)}};
  figure.panels.front().levels.push_back({.at = 1.0, .name = "equal"});
  return figure;
}

PageJson links_json(const LinkUses& uses) {
  PageJson json = {{"nodes", uses.nodes}, {"time_s", uses.time.value()}, {"links", PageJson::array()}};
  for (const LinkUse& use : uses.links) {
    json["links"].push_back({{"name", use.name},
                             {"kind", name(use.kind)},
                             {"links", use.links},
                             {"bandwidth_bytes_per_second", use.bandwidth.value()},
                             {"busiest_bytes", use.busiest.value()},
                             {"mean_share", use.mean},
                             {"busiest_share", use.most}});
  }
  return json;
}

Figure timeline_figure(const Result& result) {
  constexpr int finest = 20'000;  // of the page's zoom
  Figure figure = to_figure(TimelineFigure{.title = result.scenario, .entries = result.timeline, .pixels = finest});
  figure.panels.front().labels.clear();
  return figure;
}

}  // namespace foretrain
