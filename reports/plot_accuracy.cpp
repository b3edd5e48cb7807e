#include "reports/plot_accuracy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "reports/axis.hpp"
#include "reports/gnuplot.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int square = 400, left = 84, legend_margin = 50, top = 52, bottom = 66, legend_line = 18;
constexpr std::size_t panels_per_row = 2;
// Filled circle, square, triangles and diamond of gnuplot's SVG terminal.
constexpr std::array<int, 5> point_types = {7, 5, 9, 11, 13};

struct Quantity {
  std::string_view column;
  std::string_view title;
  std::string_view unit;
};
constexpr std::array<Quantity, 6> quantities = {{{"step_time", "Step time", "s"},
                                                 {"samples_per_second", "Throughput", "samples/s"},
                                                 {"tokens_per_second", "Throughput", "tokens/s"},
                                                 {"time", "Time", "s"},
                                                 {"bus_bandwidth", "Bus bandwidth", "B/s"},
                                                 {"memory_per_gpu", "Memory per GPU", "B"}}};

/// The cases of one quantity, by group.
struct Panel {
  Quantity quantity;
  struct Group {
    std::string name;
    std::vector<Comparison> cases;
  };
  std::vector<Group> groups;
  double low = 0.0, high = 0.0;
};

std::vector<Panel> panels_of(const AccuracyReport& report) {
  std::vector<Panel> panels;
  for (const Quantity& quantity : quantities) {
    Panel panel{quantity, {}, 0.0, 0.0};
    for (const Comparison& c : report.cases) {
      if (c.quantity != quantity.column) continue;
      auto group =
          std::find_if(panel.groups.begin(), panel.groups.end(), [&](const auto& g) { return g.name == c.group; });
      if (group == panel.groups.end()) group = panel.groups.insert(group, {c.group, {}});
      group->cases.push_back(c);
      const auto [low, high] = std::minmax(c.measured, c.predicted);
      panel.low = panel.low > 0.0 ? std::min(panel.low, low) : low;
      panel.high = std::max(panel.high, high);
    }
    if (!panel.groups.empty()) panels.push_back(std::move(panel));
  }
  return panels;
}

std::string group_data(const Panel::Group& group, std::size_t number) {
  std::string data = fmt::format("$group{} << END\n", number);
  for (const Comparison& c : group.cases) data += fmt::format("{:.9g} {:.9g}\n", c.measured, c.predicted);
  return data + "END\n";
}

/// "vtrain: 8.3 %, n = 41".
std::string legend_text(const Panel::Group& group) {
  const ErrorStatistics statistics = error_statistics(group.cases);
  return fmt::format("{}: {:.1f} %, n = {}", group.name, statistics.mape * 100.0, statistics.n);
}

int panel_width(const Panel& panel) {
  int legend = 0;
  for (const Panel::Group& group : panel.groups) legend = std::max(legend, text_width(legend_text(group), 12));
  return left + square + legend_margin + legend;
}

int panel_height(const Panel& panel) {
  return top + bottom + std::max(square, legend_line * static_cast<int>(panel.groups.size()));
}

/// A panel and its upper left corner in the picture.
struct PlacedPanel {
  Panel panel;
  int x = 0;
  int y = 0;
};
struct Layout {
  std::vector<PlacedPanel> panels;
  int width = 0;
  int height = 0;
};

/// Row after row, two panels in each.
Layout lay_out(std::vector<Panel> panels) {
  Layout layout;
  int row_height = 0;
  int x = 0;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    if (i % panels_per_row == 0) {
      layout.height += row_height;
      row_height = x = 0;
    }
    const int width = panel_width(panels[i]);
    row_height = std::max(row_height, panel_height(panels[i]));
    layout.panels.push_back({std::move(panels[i]), x, layout.height});
    x += width;
    layout.width = std::max(layout.width, x);
  }
  layout.height += row_height;
  return layout;
}

/// How the points of a group look.
std::string point_style(std::size_t group) {
  return fmt::format("pointtype {} pointsize 0.6 linecolor rgb '{}'",
                     point_types[(group / palette.size()) % point_types.size()], palette[group % palette.size()]);
}

/// One line per group beside the plot area. (gnuplot's own key has no place for many.)
std::string legend_script(const PlacedPanel& placed, const Layout& layout) {
  std::string script;
  for (std::size_t i = 0; i < placed.panel.groups.size(); ++i) {
    const int x = placed.x + left + square + 18;
    const int y = placed.y + top + 6 + legend_line * static_cast<int>(i);
    script += fmt::format("set label {} at screen {:.5f},{:.5f} left point {} offset 1,-0.25 font ',12'\n",
                          gnuplot_string(legend_text(placed.panel.groups[i])), static_cast<double>(x) / layout.width,
                          1.0 - static_cast<double>(y) / layout.height, point_style(i));
  }
  return script;
}

std::string panel_script(const PlacedPanel& placed, const Layout& layout) {
  const Panel& panel = placed.panel;
  std::string script = gnuplot_margins(layout.width, layout.height, placed.x + left, placed.x + left + square,
                                       placed.y + top, placed.y + top + square);
  script += fmt::format("set label 90 '{}' at graph 0,1 offset 0,1.2 left font ',15'\n", panel.quantity.title);
  script +=
      "set label 91 'mean error per group; dashed: ±10 %' at graph 1,1 offset 0,1.1 right textcolor rgb '#666666' "
      "font ',12'\n";
  script += fmt::format("set xlabel 'measured ({0})'\nset ylabel 'predicted ({0})'\n", panel.quantity.unit);
  script +=
      fmt::format("set xrange [{0:.6g}:{1:.6g}]\nset yrange [{0:.6g}:{1:.6g}]\n", panel.low / 1.5, panel.high * 1.5);
  script += legend_script(placed, layout);
  std::string plots =
      "plot x with lines linecolor rgb '#7f7f7f' linewidth 1, "
      "x*1.1 with lines linecolor rgb '#9a9a9a' linewidth 0.8 dashtype 2, "
      "x/1.1 with lines linecolor rgb '#9a9a9a' linewidth 0.8 dashtype 2";
  for (std::size_t i = 0; i < panel.groups.size(); ++i) {
    script += group_data(panel.groups[i], i);
    plots += fmt::format(", $group{} using 1:2 with points {}", i, point_style(i));
  }
  return script + plots + "\nunset label\n";
}

}  // namespace

std::string accuracy_svg(const AccuracyReport& report) {
  const Layout layout = lay_out(panels_of(report));
  if (layout.panels.empty()) throw std::invalid_argument("there is no prediction to draw beside its measurement");
  std::string script = gnuplot_preamble(layout.width, layout.height) +
                       "set logscale xy\nset format xy '%g'\nset multiplot\nset border 15\n" +
                       "set grid xtics ytics linecolor rgb '#e4e4e4' linetype 1\n";
  for (const PlacedPanel& panel : layout.panels) script += panel_script(panel, layout);
  return run_gnuplot(script + "unset multiplot\n");
}

}  // namespace foretrain
