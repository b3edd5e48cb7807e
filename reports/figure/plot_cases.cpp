#include "reports/figure/plot_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "model/base/format.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

template <typename Named>
Named& named(std::vector<Named>& all, const std::string& name, std::string Named::*key) {
  const auto known = std::ranges::find(all, name, key);
  if (known != all.end()) return *known;
  all.emplace_back().*key = name;
  return all.back();
}

Panel drawn(const CasePanel& cases, const std::string& axis) {
  Seconds longest;
  std::map<double, std::string> tics;
  double shortest = 0.0;
  for (const CaseCurve& curve : cases.curves) {
    for (const CasePoint& point : curve.points) {
      longest = std::max({longest, point.predicted, point.measured});
      const double least = std::min(point.predicted, point.measured).value();
      shortest = shortest > 0.0 ? std::min(shortest, least) : least;
      tics[point.x] = point.label;
    }
  }
  const TimeUnit unit = time_unit(longest);
  Panel panel{.title = cases.title, .subtitle = "lines: predicted; points: measured", .width = 300, .height = 270};
  panel.x = {
      .name = axis,
  };
  std::vector<double> values;
  for (const auto& [at, label] : tics) {
    values.push_back(at);
    panel.x.tics.push_back({at, label});
  }
  panel.x.logarithmic = grow_by_factors(values);
  panel.y = {.name = fmt::format("time of one step ({})", unit.name), .grid = true};
  panel.y.logarithmic = spans_decades(shortest, longest.value());
  for (std::size_t i = 0; i < cases.curves.size(); ++i) {
    const CaseCurve& curve = cases.curves[i];
    const std::string_view colour = palette[i % palette.size()];
    Series predicted{.end = spoken(curve.name), .colour = colour, .line = 2.0};
    Series measured{.colour = colour, .dot = Dot::own, .dot_size = 0.8};
    for (const CasePoint& point : curve.points) {
      predicted.points.push_back({point.x, point.predicted / unit.size});
      measured.points.push_back({point.x, point.measured / unit.size});
    }
    panel.series.push_back(std::move(predicted));
    panel.series.push_back(std::move(measured));
  }
  return panel;
}

}  // namespace

void add_point(CaseFigure& figure, const std::string& panel, const std::string& curve, CasePoint point) {
  CaseCurve& into = named(named(figure.panels, panel, &CasePanel::title).curves, curve, &CaseCurve::name);
  const auto place = std::ranges::upper_bound(into.points, point.x, {}, &CasePoint::x);
  into.points.insert(place, std::move(point));
}

Figure to_figure(const CaseFigure& cases) {
  Figure figure;
  figure.columns = 3;
  for (CasePanel panel : cases.panels) {
    std::erase_if(panel.curves, [](const CaseCurve& curve) { return curve.points.size() < 2; });
    if (!panel.curves.empty()) figure.panels.push_back(drawn(panel, cases.axis));
  }
  return figure;
}

}  // namespace foretrain
