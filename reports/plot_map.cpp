#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "reports/axis.hpp"
#include "reports/gnuplot.hpp"
#include "reports/map.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int cell_width = 23, cell_height = 15, gap = 24, left = 92, right = 28, top = 66, between = 84, bottom = 132;
constexpr int key_step = 44, key_height = 16, key_width = 840;

// The scale of colours: from a sixteenth to sixteen times.
constexpr double most_doublings = 4.0;

struct Colour {
  double red, green, blue;
};

/// A diverging scale that people with any colour vision can read (ColorBrewer RdBu): blue, the servers are faster;
/// white, as fast; red, slower. From −1 to 1.
Colour colour_at(double position) {
  static constexpr std::array<Colour, 7> anchors = {{{0x21, 0x66, 0xac},
                                                     {0x67, 0xa9, 0xcf},
                                                     {0xd1, 0xe5, 0xf0},
                                                     {0xfb, 0xfb, 0xfb},
                                                     {0xfd, 0xdb, 0xc7},
                                                     {0xef, 0x8a, 0x62},
                                                     {0xb2, 0x18, 0x2b}}};
  const double place = (std::clamp(position, -1.0, 1.0) + 1.0) / 2.0 * (anchors.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(place), anchors.size() - 2);
  const double share = place - static_cast<double>(low);
  const auto mix = [&](double a, double b) { return a + (b - a) * share; };
  const Colour& a = anchors[low];
  const Colour& b = anchors[low + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

/// Half doublings, so that cells of one colour can be drawn as one: 0 when the two are as good as each other, and never
/// when they are not.
int class_of(double ratio) {
  if (std::abs(ratio - 1.0) <= map_margin) return 0;
  const int most = static_cast<int>(2.0 * most_doublings);
  const int halves = std::max(1, static_cast<int>(std::lround(2.0 * std::abs(std::log2(ratio)))));
  return std::min(halves, most) * (ratio < 1.0 ? -1 : 1);
}

/// The colour of a class as gnuplot's `rgb variable` wants it.
long rgb(int colour_class) {
  const Colour colour = colour_at(colour_class / (2.0 * most_doublings));
  return std::lround(colour.red) * 65536 + std::lround(colour.green) * 256 + std::lround(colour.blue);
}

struct Layout {
  int columns, rows, panels;
  [[nodiscard]] int panel_width() const { return columns * cell_width; }
  [[nodiscard]] int panel_height() const { return rows * cell_height; }
  /// Of the picture; the key needs its room below few panels too.
  [[nodiscard]] int width() const {
    return std::max(left + panels * panel_width() + (panels - 1) * gap + right, left + key_width);
  }
  [[nodiscard]] int height(int bands) const { return top + bands * panel_height() + (bands - 1) * between + bottom; }
};

std::string tics(const std::vector<std::string>& labels, bool shown) {
  std::string text;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", gnuplot_string(shown ? labels[i] : ""), i);
  }
  return "(" + text + ")";
}

/// One line per run of cells of one colour: its middle, its four edges, the colour.
std::string cell_data(const MapFigure& figure, const MapPanel& panel, const MapBand& band, const std::string& name) {
  std::string data = "$" + name + " << END\n";
  const std::size_t columns = figure.x.labels.size();
  for (std::size_t y = 0; y < figure.y.labels.size(); ++y) {
    const auto class_at = [&](std::size_t x) -> std::optional<int> {
      const std::optional<double> ratio = band.ratio(panel.at(x, y, columns));
      return ratio ? std::optional(class_of(*ratio)) : std::nullopt;
    };
    for (std::size_t first = 0; first < columns;) {
      const std::optional<int> colour = class_at(first);
      std::size_t next = first + 1;
      while (next < columns && class_at(next) == colour) ++next;
      if (colour) {
        data += fmt::format("{} {} {} {} {} {} {}\n", first, y, static_cast<double>(first) - 0.5,
                            static_cast<double>(next) - 0.5, static_cast<double>(y) - 0.5, static_cast<double>(y) + 0.5,
                            rgb(*colour));
      }
      first = next;
    }
  }
  return data + "END\n";
}

std::string band_script(const MapFigure& figure, const Layout& layout, int band, int bands, const MapBand& comparison) {
  std::string script;
  const int y = top + band * (layout.panel_height() + between);
  for (int p = 0; p < layout.panels; ++p) {
    const MapPanel& panel = figure.panels[static_cast<std::size_t>(p)];
    const int x = left + p * (layout.panel_width() + gap);
    const std::string name = fmt::format("cells{}_{}", band, p);
    script += cell_data(figure, panel, comparison, name);
    script += gnuplot_margins(layout.width(), layout.height(bands), x, x + layout.panel_width(), y,
                              y + layout.panel_height());
    script += fmt::format("set xrange [-0.5:{}]\nset yrange [-0.5:{}]\n", layout.columns - 0.5, layout.rows - 0.5);
    script += fmt::format("set xtics {} font ',9'\nset ytics {} font ',9'\n", tics(figure.x.labels, true),
                          tics(figure.y.labels, p == 0));
    script +=
        fmt::format("set xlabel {} offset 0,0.4 font ',11'\n", gnuplot_string(band + 1 == bands ? figure.x.title : ""));
    script += fmt::format("set ylabel {} font ',11'\n", gnuplot_string(p == 0 ? figure.y.title : ""));
    script += fmt::format("set label 1 {} at graph 0,1 offset 0,0.6 left font ',11' textcolor rgb '#555555'\n",
                          gnuplot_string(panel.label + " " + figure.panel.title));
    if (p == 0) {
      script +=
          fmt::format("set label 2 {} at graph 0,1 offset 0,1.75 left font ',14'\n", gnuplot_string(comparison.title));
    }
    script += fmt::format(
        "plot ${} using 1:2:3:4:5:6:7 with boxxyerror fillstyle solid 1.0 noborder linecolor rgb "
        "variable\nunset label\n",
        name);
  }
  return script;
}

/// The colours and what they stand for.
std::string key_script(const Layout& layout, int bands) {
  const int steps = 2 * static_cast<int>(most_doublings) + 1;
  const int y = layout.height(bands) - 44;
  const auto at = [&](int x_pixels, int y_pixels) {
    return fmt::format("at screen {:.5f},{:.5f}", static_cast<double>(x_pixels) / layout.width(),
                       1.0 - static_cast<double>(y_pixels) / layout.height(bands));
  };
  std::string script = "$key << END\n";
  std::string labels;
  for (int i = 0; i < steps; ++i) {
    const int doublings = i - static_cast<int>(most_doublings);
    const std::string label = doublings < 0    ? fmt::format("1/{}", 1 << -doublings)
                              : doublings == 0 ? "equal"
                                               : fmt::format("{}", 1 << doublings);
    script += fmt::format("{} 0 {} {} -0.5 0.5 {}\n", i, i - 0.5, i + 0.5, rgb(2 * doublings));
    labels += fmt::format("set label {} '{}' {} center font ',11'\n", 10 + i, label,
                          at(left + i * key_step + key_step / 2, y + key_height + 12));
  }
  script += "END\n" + labels;
  script += gnuplot_margins(layout.width(), layout.height(bands), left, left + steps * key_step, y, y + key_height);
  script += fmt::format(
      "set xrange [-0.5:{}]\nset yrange [-0.5:0.5]\nunset xtics\nunset ytics\nset xlabel ''\nset "
      "ylabel ''\n",
      steps - 0.5);
  script +=
      fmt::format("set label 1 'time of the servers ÷ time of the other way' {} left font ',12'\n", at(left, y - 12));
  const int beside = left + steps * key_step + 30;
  script += fmt::format("set label 2 'blue: the servers are faster' {} left font ',12' textcolor rgb '#2166ac'\n",
                        at(beside, y + 2));
  script += fmt::format("set label 3 'red: they are slower' {} left font ',12' textcolor rgb '#b2182b'\n",
                        at(beside, y + 18));
  script += fmt::format("set label 4 'equal: within 5 %' {} left font ',12'\n", at(beside + 230, y + 2));
  return script +
         "plot $key using 1:2:3:4:5:6:7 with boxxyerror fillstyle solid 1.0 border rgb '#cccccc' linecolor rgb "
         "variable\n"
         "unset label\n";
}

}  // namespace

std::string map_svg(const MapFigure& figure) {
  const std::vector<MapBand> comparisons = figure.bands();
  if (comparisons.empty()) throw std::invalid_argument("there is nothing to draw on the map");
  const Layout layout{static_cast<int>(figure.x.labels.size()), static_cast<int>(figure.y.labels.size()),
                      static_cast<int>(figure.panels.size())};
  const int bands = static_cast<int>(comparisons.size());
  // A line of the same grey around the panels: white cells lie on white.
  std::string script = gnuplot_preamble(layout.width(), layout.height(bands)) +
                       "unset grid\nset border 15 linecolor rgb '#bbbbbb'\nset tics scale 0\nset multiplot\n";
  for (int band = 0; band < bands; ++band) {
    script += band_script(figure, layout, band, bands, comparisons[static_cast<std::size_t>(band)]);
  }
  return run_gnuplot(script + key_script(layout, bands) + "unset multiplot\n");
}

}  // namespace foretrain
