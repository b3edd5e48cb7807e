#include "reports/figure/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "model/base/format.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

// Bars are drawn in time while the longest is at most this many times the shortest.
constexpr double widest_comparable_ratio = 12.0;

/// Text colours in a part's piece of a bar, in the order of area_palette.
constexpr std::array<std::string_view, breakdown_parts.size()> text_colours = {"#ffffff", "#ffffff", "#000000",
                                                                               "#000000", "#000000", "#ffffff"};

/// A bar in shares of its step in per cent, or in times in this unit, from its left to its right end, and what is
/// written in it and behind it.
void add_bar(Panel& panel, std::vector<Series>& parts, const BreakdownBar& bar, std::optional<Seconds> unit,
             double row) {
  const Breakdown& b = bar.breakdown;
  const auto place = [&](Seconds time) { return unit ? time / *unit : time / b.total() * 100.0; };
  Seconds before;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Seconds time = b.*breakdown_parts.at(i).time;
    const double from = place(before), to = place(before + time);
    before += time;
    if (!(time > Seconds(0))) continue;
    parts[i].boxes.push_back({from, to, row - 0.34, row + 0.34});
    panel.labels.push_back({.text = fmt::format("{:.0f} %", time / b.total() * 100.0),
                            .x = (from + to) / 2.0,
                            .y = row,
                            .colour = text_colours.at(i),
                            .room = to - from});
  }
  panel.labels.push_back({.text = format_seconds(b.total()) + (bar.remark.empty() ? "" : " · " + bar.remark),
                          .x = place(b.total()),
                          .y = row,
                          .pin = Pin::left,
                          .right = 8,
                          .font = 13});
  panel.y.tics.push_back({row, bar.label});
}

/// Common beginning of all labels up to a comma, for the title.
std::string common_beginning(const std::vector<BreakdownBar>& bars) {
  std::string common = bars.front().label;
  for (const BreakdownBar& bar : bars) {
    const auto differs = std::ranges::mismatch(common, bar.label).in1;
    common.erase(differs, common.end());
  }
  const std::size_t comma = common.rfind(", ");
  return bars.size() < 2 || comma == std::string::npos ? "" : common.substr(0, comma + 2);
}

}  // namespace

Figure to_figure(const std::vector<BreakdownBar>& bars) {
  if (bars.empty()) return {};
  const auto [low, high] = std::ranges::minmax(bars, {}, [](const BreakdownBar& bar) { return bar.breakdown.total(); });
  const Seconds longest = high.breakdown.total();
  const bool shares = longest > low.breakdown.total() * widest_comparable_ratio;
  const TimeUnit unit = time_unit(longest);
  const auto count = static_cast<double>(bars.size());
  Panel panel{.width = 640, .height = 46 * static_cast<int>(bars.size()), .rows = true, .edge = "#ffffff"};
  panel.x = {.name = shares ? "share of the step (%)" : fmt::format("time of one step ({})", unit.name),
             .high = shares ? 100.0 : longest / unit.size,
             .grid = true};
  panel.y = {.low = 0.4, .high = count + 0.6};
  std::vector<Series> parts;
  for (std::size_t i = 0; i < breakdown_parts.size(); ++i) {
    parts.push_back({.name = std::string(breakdown_parts.at(i).name), .colour = area_palette.at(i)});
  }
  const std::string common = common_beginning(bars);
  if (!common.empty()) panel.title = common.substr(0, common.size() - 2);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    BreakdownBar bar = bars[i];
    bar.label.erase(0, common.size());
    add_bar(panel, parts, bar, shares ? std::nullopt : std::optional(unit.size), count - static_cast<double>(i));
  }
  for (Series& part : parts) {
    if (!part.boxes.empty()) panel.series.push_back(std::move(part));
  }
  return {.panels = {std::move(panel)}};
}

}  // namespace foretrain
