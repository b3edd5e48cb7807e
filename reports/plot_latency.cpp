#include "reports/plot_latency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "model/base/format.hpp"
#include "reports/axis.hpp"
#include "reports/gnuplot.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int width = 760, height = 430, left = 74, right = 24, top = 74, bottom = 64;

std::string size_tics(double low, double high) {
  std::string tics;
  for (double size = std::exp2(std::ceil(std::log2(low))); size <= high; size *= 4.0) {
    tics += fmt::format("{}'{}' {:.0f}", tics.empty() ? "" : ", ", format_binary_bytes(Bytes(size)), size);
  }
  return tics;
}

}  // namespace

std::string to_svg(const LatencyFigure& figure) {
  if (figure.points.empty()) throw std::invalid_argument("there is no measured walk to draw");
  const double low = figure.points.front().working_set.value() / 1.2;
  const double high = figure.points.back().working_set.value() * 1.2;
  double least = 1e30, most = 0.0;
  std::string data;
  for (const LatencyFigure::Point& point : figure.points) {
    const double predicted = point.predicted.value() * 1e9, measured = point.measured.value() * 1e9;
    least = std::min({least, predicted, measured});
    most = std::max({most, predicted, measured});
    data += fmt::format("{:.0f} {:.6g} {:.6g}\n", point.working_set.value(), predicted, measured);
  }
  least /= 1.5;
  most *= 1.8;
  std::string script =
      gnuplot_preamble(width, height) + gnuplot_margins(width, height, left, width - right, top, height - bottom);
  script += fmt::format("set label 1 {} at graph 0,1 offset 0,2.3 left font ',15'\n", gnuplot_string(figure.title));
  script +=
      "set label 2 'line: predicted; points: measured; dashed: size of a cache' at graph 0,1 offset 0,0.9 left "
      "textcolor rgb '#666666' font ',12'\n";
  script += fmt::format("set logscale x 2\nset logscale y\nset xrange [{:.6g}:{:.6g}]\nset yrange [{:.6g}:{:.6g}]\n",
                        low, high, least, most);
  script += fmt::format("set xtics ({})\nset ytics {}\n", size_tics(low, high), logarithmic_tics(least, most));
  script += "set xlabel 'working set'\nset ylabel 'time of one dependent load (ns)'\nunset key\n";
  int number = 10;
  for (const auto& [name, size] : figure.caches) {
    if (size.value() < low || size.value() > high) continue;
    script += fmt::format(
        "set arrow {0} from {1:.0f},graph 0 to {1:.0f},graph 1 nohead dashtype 2 linecolor rgb '#999999'\n"
        "set label {0} {2} at {1:.0f},graph 0.96 offset 0.5,0 left textcolor rgb '#666666'\n",
        number, size.value(), gnuplot_string(name));
    ++number;
  }
  script += "$walks << END\n" + data + "END\n";
  script += fmt::format(
      "plot $walks using 1:2 with lines linewidth 2 linecolor rgb '{0}', "
      "$walks using 1:3 with points pointtype 7 pointsize 0.7 linecolor rgb '{1}'\n",
      palette[0], palette[1]);
  return run_gnuplot(script);
}

}  // namespace foretrain
