#include "reports/figure/plot_attention.hpp"

#include <fmt/format.h>

#include "model/base/format.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

Panel empty_panel(const std::string& title, const std::string& unit, const AttentionFigure& attention) {
  Panel panel{.title = title, .width = 380, .height = 330};
  panel.x = {.name = "sequence length (tokens)", .logarithmic = true};
  for (const std::int64_t length : attention.lengths) {
    panel.x.tics.push_back({static_cast<double>(length), std::to_string(length)});
  }
  panel.y = {.name = unit, .logarithmic = true, .grid = true};
  return panel;
}

std::string crossover_sentence(const AttentionFigure& attention, std::size_t curve) {
  const std::string& name = attention.curves[curve].name;
  const std::string& first = attention.curves.front().name;
  const auto length = crossover(attention, 0, curve);
  if (!length) return fmt::format("{} is not faster than {} at these lengths", name, first);
  if (*length == attention.lengths.front()) return fmt::format("{} is faster than {} at every length", name, first);
  return fmt::format("{} is faster than {} from {} on", name, first, *length);
}

}  // namespace

std::optional<std::int64_t> crossover(const AttentionFigure& attention, std::size_t first, std::size_t later) {
  std::optional<std::int64_t> result;
  for (std::size_t i = attention.lengths.size(); i-- > 0;) {
    const auto& slow = attention.curves[first].times[i];
    const auto& fast = attention.curves[later].times[i];
    if (!slow || !fast) continue;
    if (!(*fast < *slow)) break;
    result = attention.lengths[i];
  }
  return result;
}

std::string to_text(const AttentionFigure& attention) {
  std::vector<std::string> lengths;
  for (const std::int64_t length : attention.lengths) lengths.push_back(std::to_string(length));
  const std::vector<TimeCurve> curves(attention.curves.begin(), attention.curves.end());
  const auto times = time_cells("time", lengths, curves, "does not fit");
  auto memory = times;
  memory.front().front() = "memory";
  for (std::size_t c = 0; c < attention.curves.size(); ++c) {
    for (std::size_t i = 0; i < lengths.size(); ++i) memory[i + 1][c + 1] = format_bytes(attention.curves[c].memory[i]);
  }
  std::string text =
      fmt::format("{}, {}\n\n{}\n\n{}\n", attention.title, attention.passes, table_text(times), table_text(memory));
  for (std::size_t c = 1; c < attention.curves.size(); ++c) text += "  " + crossover_sentence(attention, c) + "\n";
  return text;
}

Figure to_figure(const AttentionFigure& attention) {
  const std::vector<double> lengths(attention.lengths.begin(), attention.lengths.end());
  Panel time = empty_panel("Time", "time (ms)", attention);
  Panel memory = empty_panel("Memory at its peak", "memory (GB)", attention);
  memory.levels.push_back(
      {.at = attention.capacity.value() * 1e-9, .name = "the GPU has " + format_bytes(attention.capacity)});
  for (const AttentionCurve& curve : attention.curves) {
    Series line = to_series(curve, lengths, Seconds(1e-3));
    line.value.clear();
    time.series.push_back(line);
    for (std::size_t i = 0; i < lengths.size(); ++i) line.points[i].y = curve.memory[i].value() * 1e-9;
    memory.series.push_back(std::move(line));
  }
  return {.title = attention.title + ", " + attention.passes, .panels = {std::move(time), std::move(memory)}};
}

}  // namespace foretrain
