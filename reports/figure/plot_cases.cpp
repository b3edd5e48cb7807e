#include "reports/figure/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

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

/// Scales that all panels share, so that they can be compared: their times, and the colour of each name.
struct Common {
  double shortest = 0.0;
  Seconds longest;
  std::vector<std::string> names;
};

Common common_to(const std::vector<CasePanel>& panels) {
  Common common;
  for (const CasePanel& panel : panels) {
    for (const CaseCurve& curve : panel.curves) {
      if (std::ranges::find(common.names, curve.name) == common.names.end()) common.names.push_back(curve.name);
      for (const CasePoint& point : curve.points) {
        common.longest = std::max({common.longest, point.predicted, point.measured});
        const double least = std::min(point.predicted, point.measured).value();
        common.shortest = common.shortest > 0.0 ? std::min(common.shortest, least) : least;
      }
    }
  }
  return common;
}

/// In seconds where all panels' times span decades: their tics have units of their own.
Axis time_axis(const Common& common, const std::string& name) {
  Axis axis{.name = name, .grid = true};
  axis.logarithmic = spans_decades(common.shortest, common.longest.value());
  if (!axis.logarithmic) {
    axis.name += fmt::format(" ({})", time_unit(common.longest).name);
    return axis;
  }
  axis.unit = "s";
  return axis;
}

Axis value_axis(const CasePanel& cases, const std::string& name) {
  std::map<double, std::string> tics;
  for (const CaseCurve& curve : cases.curves) {
    for (const CasePoint& point : curve.points) tics[point.x] = point.label;
  }
  Axis axis{.name = name};
  std::vector<double> values;
  for (const auto& [at, label] : tics) {
    values.push_back(at);
    axis.tics.push_back({at, label});
  }
  axis.logarithmic = grow_by_factors(values);
  return axis;
}

Panel drawn(const CasePanel& cases, const Common& common, const CaseFigure& figure) {
  Panel panel{.title = cases.title, .subtitle = "lines: predicted; points: measured", .width = 310, .height = 260};
  panel.x = value_axis(cases, figure.axis);
  panel.y = time_axis(common, figure.time);
  const Seconds unit = panel.y.logarithmic ? Seconds(1.0) : time_unit(common.longest).size;
  for (const CaseCurve& curve : cases.curves) {
    const auto place = static_cast<std::size_t>(std::ranges::find(common.names, curve.name) - common.names.begin());
    const std::string_view colour = palette[place % palette.size()];
    Series predicted{.name = spoken(curve.name), .colour = colour, .line = 2.0};
    Series measured{.table_name = predicted.name, .colour = colour, .dot = Dot::own, .dot_size = 0.8, .measured = true};
    for (const CasePoint& point : curve.points) {
      predicted.points.push_back({point.x, point.predicted / unit});
      measured.points.push_back({point.x, point.measured / unit});
      if (!(point.range.high > 0.0)) continue;
      predicted.ranges.push_back({point.range.low / unit.value(), point.range.high / unit.value()});
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
  std::vector<CasePanel> panels = cases.panels;
  for (CasePanel& panel : panels) {
    std::erase_if(panel.curves, [](const CaseCurve& curve) { return curve.points.size() < 2; });
  }
  std::erase_if(panels, [](const CasePanel& panel) { return panel.curves.empty(); });
  Figure figure{.columns = 2, .legend = Legend::shared};
  const Common common = common_to(panels);
  for (const CasePanel& panel : panels) figure.panels.push_back(drawn(panel, common, cases));
  return figure;
}

}  // namespace foretrain
