#include "reports/figure/plot_attention.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/base/format.hpp"

namespace foretrain {

namespace {

Panel panel_of(CurveChart chart, const std::string& title) {
  chart.title = title;
  chart.scale.text = nullptr;
  Panel panel = to_panel(chart, 380, 330);
  panel.x.logarithmic = panel.y.logarithmic = true;
  return panel;
}

std::string crossover_sentence(const CurveChart& times, std::size_t curve) {
  const std::string &name = times.curves[curve].name, &first = times.curves.front().name;
  const auto place = crossover(times, 0, curve);
  if (!place) return fmt::format("{} is not faster than {} at these lengths", name, first);
  if (*place == 0) return fmt::format("{} is faster than {} at every length", name, first);
  return fmt::format("{} is faster than {} from {} on", name, first, times.labels[*place]);
}

}  // namespace

std::optional<std::size_t> crossover(const CurveChart& times, std::size_t first, std::size_t later) {
  std::optional<std::size_t> result;
  for (std::size_t i = times.places.size(); i-- > 0;) {
    const double slow = times.curves[first].values[i], fast = times.curves[later].values[i];
    if (std::isnan(slow) || std::isnan(fast)) continue;
    if (!(fast < slow)) break;
    result = i;
  }
  return result;
}

std::string to_text(const AttentionChart& attention) {
  std::string text = fmt::format("{}\n\n{}\n\n{}\n", attention.times.title,
                                 table_text(cells_of(attention.times, "time", "does not fit")),
                                 table_text(cells_of(attention.memory, "memory")));
  for (std::size_t c = 1; c < attention.times.curves.size(); ++c) {
    text += "  " + crossover_sentence(attention.times, c) + "\n";
  }
  return text;
}

Figure to_figure(const AttentionChart& attention) {
  Panel memory = panel_of(attention.memory, "Memory at its peak");
  memory.levels.push_back(
      {.at = attention.capacity * 1e-9, .name = "the GPU has " + format_bytes(Bytes(attention.capacity))});
  return {.title = attention.times.title, .panels = {panel_of(attention.times, "Time"), std::move(memory)}};
}

}  // namespace foretrain
