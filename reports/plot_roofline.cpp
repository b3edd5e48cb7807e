#include "reports/plot_roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/base/error.hpp"
#include "reports/axis.hpp"
#include "reports/gnuplot.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int plot_width = 560, figure_height = 520;
constexpr int left = 84, top = 60, bottom = 64;
constexpr int name_gap = 17;
constexpr std::size_t most_names = 18;

struct Range {
  double low = 0.0, high = 0.0;

  [[nodiscard]] double place(double value) const { return std::log(value / low) / std::log(high / low); }
};

std::vector<RooflinePoint> drawn_points(const RooflinePanel& panel) {
  std::vector<RooflinePoint> points;
  for (const RooflinePoint& point : panel.points) {
    if (point.drawable()) points.push_back(point);
  }
  return points;
}

// Decades around the points and the ridges of all roofs.
Range intensity_range(const RooflinePanel& panel, const std::vector<RooflinePoint>& points) {
  double low = panel.roofs.back().rate / panel.bandwidth / FlopsPerByte(1.0);
  double high = panel.roofs.front().rate / panel.bandwidth / FlopsPerByte(1.0);
  for (const RooflinePoint& point : points) {
    low = std::min(low, point.intensity().value());
    high = std::max(high, point.intensity().value());
  }
  return {std::pow(10.0, std::floor(std::log10(low) - 0.1)), std::pow(10.0, std::ceil(std::log10(high) + 0.1))};
}

// TFLOP/s.
Range rate_range(const RooflinePanel& panel, const std::vector<RooflinePoint>& points) {
  double low = panel.roofs.back().rate.value();
  for (const RooflinePoint& point : points) low = std::min(low, point.rate().value());
  return {low * 1e-12 / 2.0, panel.roofs.front().rate.value() * 1e-12 * 1.6};
}

std::string roofs_script(const RooflinePanel& panel, const Range& x) {
  const double slope = panel.bandwidth.value() * 1e-12;  // TFLOP/s per FLOP/B
  std::string data = "$roofs << END\n";
  const double top_rate = panel.roofs.front().rate.value() * 1e-12;
  data += fmt::format("{:.9g} {:.9g}\n{:.9g} {:.9g}\n\n", x.low, x.low * slope, top_rate / slope, top_rate);
  for (const Roof& roof : panel.roofs) {
    const double rate = roof.rate.value() * 1e-12;
    data += fmt::format("{:.9g} {:.9g}\n{:.9g} {:.9g}\n\n", rate / slope, rate, x.high, rate);
  }
  return data + "END\n";
}

// Names of roofs stand right of the plot, apart from each other.
std::string roof_labels(const RooflinePanel& panel, const Range& y, int first) {
  std::vector<double> places;
  for (const Roof& roof : panel.roofs) places.push_back(y.place(roof.rate.value() * 1e-12));
  places = spread(places, static_cast<double>(name_gap) / (figure_height - top - bottom), 0.0, 1.0);
  std::string script;
  for (std::size_t i = 0; i < panel.roofs.size(); ++i) {
    script += fmt::format(
        "set label {} {} at graph 1.015,{:.5f} left textcolor rgb '#4d4d4d' font ',11'\n", first + static_cast<int>(i),
        gnuplot_string(fmt::format("{}: {:.4g} TFLOP/s", panel.roofs[i].name, panel.roofs[i].rate.value() * 1e-12)),
        places[i]);
  }
  return script;
}

double dot_size(const RooflinePoint& point, Seconds longest) { return 0.55 + 1.1 * std::sqrt(point.time / longest); }

struct Box {
  double left, right, low, high;  // pixels from the plot's lower left corner

  [[nodiscard]] bool meets(const Box& other) const {
    return left < other.right && other.left < right && low < other.high && other.low < high;
  }
};

// The names of the longest points, where they cover neither dots nor each other: right, left, above or below.
std::string point_labels(const std::vector<RooflinePoint>& points, const Range& x, const Range& y, int first) {
  const auto across = [&](const RooflinePoint& p) { return x.place(p.intensity().value()) * plot_width; };
  const auto up = [&](const RooflinePoint& p) {
    return y.place(p.rate().value() * 1e-12) * (figure_height - top - bottom);
  };
  std::vector<Box> taken;
  for (const RooflinePoint& p : points) taken.push_back({across(p) - 5, across(p) + 5, up(p) - 5, up(p) + 5});
  std::string script;
  int number = first;
  for (const RooflinePoint& point : points) {
    if (static_cast<std::size_t>(number - first) >= most_names) break;
    const double px = across(point), py = up(point), width = text_width(point.name, 11);
    struct Place {
      const char *align, *offset;
      Box box;
    };
    const Place places[] = {
        {"left", "1.2,0", {px + 8, px + 10 + width, py - 6, py + 6}},
        {"right", "-1.2,0", {px - 10 - width, px - 8, py - 6, py + 6}},
        {"center", "0,0.9", {px - width / 2, px + width / 2, py + 7, py + 19}},
        {"center", "0,-0.9", {px - width / 2, px + width / 2, py - 19, py - 7}},
    };
    for (const Place& place : places) {
      const bool outside = place.box.left < 0.0 || place.box.right > plot_width;
      const auto meets = [&](const Box& other) { return place.box.meets(other); };
      if (outside || std::any_of(taken.begin(), taken.end(), meets)) continue;
      taken.push_back(place.box);
      script += fmt::format("set label {} {} at {:.9g},{:.9g} {} offset {} textcolor rgb '#222222' font ',11'\n",
                            number++, gnuplot_string(point.name), point.intensity().value(),
                            point.rate().value() * 1e-12, place.align, place.offset);
      break;
    }
  }
  return script;
}

int panel_width(const RooflinePanel& panel) {
  int widest = 0;
  for (const Roof& roof : panel.roofs) widest = std::max(widest, text_width(roof.name + ": 1234 TFLOP/s", 11));
  return left + plot_width + widest + 28;
}

// A colour for each precision that has points.
std::string panel_script(const RooflinePanel& panel, int start, int width) {
  const std::vector<RooflinePoint> points = drawn_points(panel);
  if (points.empty()) throw UsageError("plot roofline: " + panel.gpu + ": no operator with arithmetic to draw");
  const Range x = intensity_range(panel, points), y = rate_range(panel, points);
  std::string script =
      gnuplot_margins(width, figure_height, start + left, start + left + plot_width, top, figure_height - bottom);
  script += fmt::format("set label 900 {} at graph 0,1 offset 0,1.6 left font ',15'\n", gnuplot_string(panel.gpu));
  script +=
      fmt::format("set label 901 {} at graph 0,1 offset 0,0.4 left textcolor rgb '#666666' font ',12'\n",
                  gnuplot_string(fmt::format("slope: {:.4g} GB/s of device memory; a point's size is its share of "
                                             "the time",
                                             panel.bandwidth.value() * 1e-9)));
  script += "set logscale xy\nset xlabel 'arithmetic intensity (FLOP per byte)'\nset ylabel 'TFLOP/s'\n";
  script += fmt::format("set xrange [{:.9g}:{:.9g}]\nset yrange [{:.9g}:{:.9g}]\n", x.low, x.high, y.low, y.high);
  script += fmt::format("set xtics {}\nset ytics {}\n", logarithmic_tics(x.low, x.high, true),
                        logarithmic_tics(y.low, y.high, true));
  script += roof_labels(panel, y, 1) + point_labels(points, x, y, 100) + roofs_script(panel, x);
  std::string plot = "plot $roofs using 1:2 with lines linewidth 1.6 linecolor rgb '#8c8c8c'";
  std::size_t colour = 0;
  std::string legend;
  for (int p = 0; p < precision_count; ++p) {
    std::string data;
    for (const RooflinePoint& point : points) {
      if (point.precision != static_cast<Precision>(p)) continue;
      data += fmt::format("{:.9g} {:.9g} {:.4g}\n", point.intensity().value(), point.rate().value() * 1e-12,
                          dot_size(point, points.front().time));
    }
    if (data.empty()) continue;
    script += fmt::format("$points{} << END\n{}END\n", p, data);
    plot += fmt::format(", $points{} using 1:2:3 with points pointtype 7 pointsize variable linecolor rgb '{}'", p,
                        palette[colour % palette.size()]);
    legend += fmt::format("set label {} {} at graph 0.985,{:.4f} right textcolor rgb '{}' font ',12'\n", 910 + p,
                          gnuplot_string(name(static_cast<Precision>(p))), 0.03 + 0.042 * static_cast<double>(colour),
                          palette[colour % palette.size()]);
    ++colour;
  }
  return script + legend + plot + "\nunset label\n";
}

}  // namespace

std::string roofline_svg(const RooflineFigure& figure) {
  int width = 0;
  for (const RooflinePanel& panel : figure.panels) width += panel_width(panel);
  if (width == 0) throw UsageError("plot roofline: no operator to draw");
  std::string script = gnuplot_preamble(width, figure_height) + "set multiplot\n";
  int start = 0;
  for (const RooflinePanel& panel : figure.panels) {
    script += panel_script(panel, start, width);
    start += panel_width(panel);
  }
  return run_gnuplot(script + "unset multiplot\n");
}

}  // namespace foretrain
