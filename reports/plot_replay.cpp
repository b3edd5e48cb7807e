#include "reports/plot_replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "model/base/format.hpp"
#include "reports/axis.hpp"
#include "reports/gnuplot.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int plot_width = 330, figure_height = 430;
constexpr int left = 80, right = 20, top = 74, bottom = 66;
constexpr double label_gap = 19.0;

/// Open MPI and Gloo are named; ours go without saying.
std::string curve_name(const HostMeasurement& run) {
  std::string words = run.algorithm;
  std::replace(words.begin(), words.end(), '_', ' ');
  if (run.servers > 0) {
    words = fmt::format("{} server{}", run.servers, run.servers == 1 ? "" : "s");
    if (run.shared_hosts) words = run.servers == run.ranks ? "a server on every worker" : words + " on workers";
  }
  if (run.executor == "gloo") return words + ", Gloo";
  if (run.executor == "mpi") return words + ", Open MPI";
  return words;
}

Seconds largest(const ReplayPanel& panel) {
  Seconds time;
  for (const ReplayCurve& curve : panel.curves) {
    for (const ReplayPoint& point : curve.points) time = std::max({time, point.predicted, point.measured});
  }
  return time;
}

std::string end_label(const ReplayCurve& curve) {
  return fmt::format("{}  {}", curve.name, format_seconds(curve.points.back().measured));
}

int panel_width(const ReplayPanel& panel) {
  int widest = 0;
  for (const ReplayCurve& curve : panel.curves) widest = std::max(widest, text_width(end_label(curve)));
  return left + plot_width + widest + right;
}

/// Labels at the right, at the height of their curves' last predictions, none over another.
std::string labels(const ReplayPanel& panel, Seconds top_of_axis) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    order.emplace_back(panel.curves[i].points.back().predicted / top_of_axis, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<double> places;
  for (const auto& [place, curve] : order) places.push_back(place);
  places = spread(places, label_gap / (figure_height - top - bottom), 0.0, 1.0);
  std::string script;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t curve = order[i].second;
    script += fmt::format("set label {} {} at graph 1.03,{:.5f} left textcolor rgb '{}'\n", i + 1,
                          gnuplot_string(end_label(panel.curves[curve])), places[i], palette[curve % palette.size()]);
  }
  return script;
}

std::string x_axis(const ReplayPanel& panel) {
  std::set<int> workers;
  for (const ReplayCurve& curve : panel.curves) {
    for (const ReplayPoint& point : curve.points) workers.insert(point.workers);
  }
  std::string tics;
  for (const int n : workers) tics += fmt::format("{}{}", tics.empty() ? "" : ", ", n);
  return fmt::format("set xrange [{}:{}]\nset xtics ({})\nset xlabel 'workers'\n", *workers.begin() - 0.3,
                     *workers.rbegin() + 0.3, tics);
}

std::string panel_script(const ReplayPanel& panel, int start, int width, std::size_t number) {
  const Seconds high = largest(panel) * 1.06;
  const TimeUnit unit = time_unit(high);
  std::string script =
      gnuplot_margins(width, figure_height, start + left, start + left + plot_width, top, figure_height - bottom);
  script += fmt::format("set label 90 {} at graph 0,1 offset 0,2.3 left font ',15'\n", gnuplot_string(panel.title));
  script +=
      "set label 91 'lines: predicted; points: measured' at graph 0,1 offset 0,0.9 left textcolor rgb '#666666' "
      "font ',12'\n";
  script +=
      fmt::format("set ylabel 'time of one all-reduce ({})'\nset yrange [0:{:.6g}]\n", unit.name, high / unit.size);
  script += x_axis(panel) + labels(panel, high);
  std::string plots;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    script += fmt::format("$curve{}x{} << END\n", number, i);
    for (const ReplayPoint& point : panel.curves[i].points) {
      script +=
          fmt::format("{} {:.9g} {:.9g}\n", point.workers, point.predicted / unit.size, point.measured / unit.size);
    }
    script += "END\n";
    const std::string_view colour = palette[i % palette.size()];
    plots += fmt::format(
        "{0}$curve{1}x{2} using 1:2 with lines linewidth 2 linecolor rgb '{3}', "
        "$curve{1}x{2} using 1:3 with points pointtype 7 pointsize 0.8 linecolor rgb '{3}'",
        plots.empty() ? "plot " : ", ", number, i, colour);
  }
  return script + plots + "\nunset label\n";
}

void add(ReplayPanel& panel, const HostMeasurement& run) {
  const std::string name = curve_name(run);
  auto curve = std::find_if(panel.curves.begin(), panel.curves.end(), [&](const auto& c) { return c.name == name; });
  if (curve == panel.curves.end()) curve = panel.curves.insert(curve, {name, {}});
  const auto place = std::find_if(curve->points.begin(), curve->points.end(),
                                  [&](const ReplayPoint& point) { return point.workers > run.ranks; });
  curve->points.insert(place, {run.ranks, run.predicted, run.median()});
}

}  // namespace

std::vector<ReplayPanel> replay_panels(const std::vector<HostMeasurement>& runs, const std::string& prefix) {
  std::vector<std::string> groups;
  std::vector<ReplayPanel> panels;
  for (const HostMeasurement& run : runs) {
    if (!run.group.starts_with(prefix)) continue;
    const auto known = std::find(groups.begin(), groups.end(), run.group);
    const auto index = static_cast<std::size_t>(known - groups.begin());
    if (known == groups.end()) {
      groups.push_back(run.group);
      panels.push_back(
          {fmt::format("{} between hosts of {:.0f} Mbit/s", format_bytes(run.size), run.rate.value() * 8e-6), {}});
    }
    add(panels[index], run);
  }
  return panels;
}

std::string to_svg(const std::vector<ReplayPanel>& panels) {
  if (panels.empty()) throw std::invalid_argument("there is no replayed run to draw");
  int width = 0;
  for (const ReplayPanel& panel : panels) width += panel_width(panel);
  std::string script = gnuplot_preamble(width, figure_height) + "set multiplot\n";
  int start = 0;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    script += panel_script(panels[i], start, width, i);
    start += panel_width(panels[i]);
  }
  return run_gnuplot(script + "unset multiplot\n");
}

}  // namespace foretrain
