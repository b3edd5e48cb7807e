#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "model/base/format.hpp"
#include "reports/axis.hpp"
#include "reports/gnuplot.hpp"
#include "reports/memory_report.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int left = 74, plot_width = 700, right = 200, top = 64, bottom = 66, plot_height = 380;
constexpr int width = left + plot_width + right, height = top + plot_height + bottom;
constexpr int square = 12, legend_line = 22;

// In the order of MemoryPart.
constexpr std::array<std::string_view, memory_part_count> colors = {"#0072B2", "#56B4E9", "#1B3A57", "#E69F00",
                                                                    "#F0E442", "#D9A7C7", "#D55E00", "#009E73",
                                                                    "#7FBF9F", "#4D4D4D", "#BDBDBD"};

/// From the bottom up: what stays comes first.
constexpr std::array<MemoryPart, memory_part_count> stacked = {
    MemoryPart::weights,       MemoryPart::gradients, MemoryPart::optimizer,   MemoryPart::context,
    MemoryPart::communication, MemoryPart::gathered,  MemoryPart::activations, MemoryPart::recomputed,
    MemoryPart::temporaries,   MemoryPart::loss,      MemoryPart::allocator};

/// Passes in a row of the same kind and micro-batch.
struct Stretch {
  std::size_t first, last;
  MemoryPhase phase;
  int micro_batch;
};

bool backward(MemoryPhase phase) { return phase == MemoryPhase::backward; }

std::vector<Stretch> stretches_of(const std::vector<MemoryMoment>& moments) {
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const MemoryMoment& m = moments[i];
    const MemoryPhase phase = m.phase == MemoryPhase::loss ? MemoryPhase::forward : m.phase;
    if (!stretches.empty() && stretches.back().phase == phase && stretches.back().micro_batch == m.micro_batch) {
      stretches.back().last = i;
    } else {
      stretches.push_back({i, i, phase, m.micro_batch});
    }
  }
  return stretches;
}

/// Lines between passes and, where there is room, what each is.
std::string passes(const std::vector<MemoryMoment>& moments) {
  const std::vector<Stretch> stretches = stretches_of(moments);
  const double pixels = static_cast<double>(plot_width) / static_cast<double>(moments.size());
  const bool roomy = stretches.size() <= 24;
  std::string script;
  std::string tics;
  for (const Stretch& s : stretches) {
    if (s.phase == MemoryPhase::optimizer) continue;
    const double middle = (static_cast<double>(s.first) + static_cast<double>(s.last)) / 2.0;
    const std::string letter = backward(s.phase) ? "B" : "F";
    const std::string label = roomy && pixels * static_cast<double>(s.last - s.first + 1) > 90.0
                                  ? fmt::format("{} {}", name(s.phase), s.micro_batch + 1)
                                  : fmt::format("{}{}", letter, s.micro_batch + 1);
    const bool room = pixels * static_cast<double>(s.last - s.first + 1) > text_width(label, 11);
    if (room) tics += fmt::format("{}'{}' {:.6g}", tics.empty() ? "" : ", ", label, middle);
    if (s.first > 0 && room) {
      script += fmt::format(
          "set arrow from first {0:.6g},graph 0 to first {0:.6g},graph 1 nohead back linecolor rgb "
          "'#d0d0d0' dashtype 3\n",
          static_cast<double>(s.first) - 0.5);
    }
  }
  return script + "set xtics (" + tics + ") scale 0 font ',11'\n";
}

std::string legend(const std::vector<std::size_t>& used) {
  std::string script;
  double y = top + 10.0;
  for (auto part = used.rbegin(); part != used.rend(); ++part) {
    const double x = left + plot_width + 22.0;
    script += fmt::format(
        "set object rectangle center screen {:.5f},{:.5f} size screen {:.5f},{:.5f} fillcolor rgb '{}' fillstyle solid "
        "noborder\nset label '{}' at screen {:.5f},{:.5f} left font ',12'\n",
        x / width, 1.0 - y / height, static_cast<double>(square) / width, static_cast<double>(square) / height,
        colors.at(*part), name(static_cast<MemoryPart>(*part)), (x + square) / width, 1.0 - y / height);
    y += legend_line;
  }
  return script;
}

}  // namespace

std::string memory_svg(const MemoryReport& report) {
  const std::vector<MemoryMoment>& moments = report.timeline.moments;
  constexpr double gb = 1e9;
  std::vector<std::size_t> used;
  for (const MemoryPart part : stacked) {
    const auto p = static_cast<std::size_t>(part);
    const auto has = [&](const MemoryMoment& m) { return m.parts.size.at(p) > Bytes(0.0); };
    if (std::any_of(moments.begin(), moments.end(), has)) used.push_back(p);
  }
  const double capacity = report.timeline.capacity.value() / gb;
  const double peak = moments[report.timeline.peak].parts.total().value() / gb;
  const double highest = std::max(capacity, peak) * 1.12;
  const auto end = static_cast<double>(moments.size()) - 0.5;

  std::string data = "$m << END\n";
  for (std::size_t i = 0; i < moments.size(); ++i) {
    double sum = 0.0;
    std::string row = fmt::format(" {:.6g}", sum);
    for (const std::size_t p : used) {
      sum += moments[i].parts.size.at(p).value() / gb;
      row += fmt::format(" {:.6g}", sum);
    }
    data += fmt::format("{:.6g}{}\n{:.6g}{}\n", static_cast<double>(i) - 0.5, row, static_cast<double>(i) + 0.5, row);
  }
  data += "END\n";

  std::string script = gnuplot_preamble(width, height);
  script += gnuplot_margins(width, height, left, left + plot_width, top, height - bottom) + data;
  script += fmt::format("set xrange [-0.5:{:.6g}]\nset yrange [0:{:.6g}]\nset ylabel 'GB'\n", end, highest);
  script += "set style fill solid 1.0 noborder\n" + passes(moments) + legend(used);
  const std::string shown =
      report.timeline.shown < report.timeline.micro_batches
          ? fmt::format(", {} of {} micro-batches", report.timeline.shown, report.timeline.micro_batches)
          : "";
  script += fmt::format("set label {} at screen {:.5f},{:.5f} left font ',15'\n", gnuplot_string(report.scenario),
                        static_cast<double>(left) / width, 1.0 - 22.0 / height);
  script +=
      fmt::format("set xlabel {}\n", gnuplot_string(fmt::format("the fullest GPU's step (stage {}), layer by layer{}",
                                                                report.timeline.stage + 1, shown)));
  script += fmt::format(
      "set arrow from graph 0,first {0:.6g} to graph 1,first {0:.6g} nohead front linecolor rgb '#B00020' linewidth 2\n"
      "set label {1} at graph 1,first {0:.6g} right offset -0.5,0.6 front textcolor rgb '#B00020' font ',12'\n",
      capacity, gnuplot_string(fmt::format("{}: {}", report.gpu, format_bytes(report.timeline.capacity))));
  const double at = static_cast<double>(report.timeline.peak);
  const bool late = at > 0.5 * end;
  script += fmt::format(
      "set label {} at first {:.6g},{:.6g} {} point pointtype 7 pointsize 0.7 offset {},0.8 front font "
      "',12'\n",
      gnuplot_string(fmt::format("peak {}", format_bytes(Bytes(peak * gb)))), at, peak, late ? "right" : "left",
      late ? "-0.8" : "0.8");
  std::string plots;
  for (std::size_t k = 0; k < used.size(); ++k) {
    plots += fmt::format("{}$m using 1:{}:{} with filledcurves linecolor rgb '{}'", plots.empty() ? "plot " : ", ",
                         k + 2, k + 3, colors.at(used[k]));
  }
  return run_gnuplot(script + plots + "\n");
}

}  // namespace foretrain
