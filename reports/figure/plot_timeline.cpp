#include "reports/figure/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "model/base/error.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int row_height = 30, label_font = 11;
constexpr double narrow = 1.5;      // two such bars with as little between them are one; none is drawn narrower
constexpr double bar_share = 0.37;  // of a row, on both sides of its middle

struct BarKind {
  std::string_view name, colour, text_colour;
};
constexpr std::array<BarKind, 6> categories = {{{"compute", area_palette[0], "#ffffff"},
                                                {"backward", area_palette[4], "#000000"},
                                                {"communication", area_palette[1], "#ffffff"},
                                                {"host", area_palette[5], "#ffffff"},
                                                {"optimizer", area_palette[2], "#000000"},
                                                {"data", area_palette[3], "#000000"}}};

struct Bar {
  std::size_t row = 0, category = 0;
  double begin = 0.0, end = 0.0;  // pixels from the left of the plot
  std::string name;               ///< empty where several are one
};

/// Backward passes have a colour of their own, so that pipelines are seen at work.
std::size_t category_of(const TimelineEntry& entry) {
  const bool backward = entry.category == "compute" && entry.name.starts_with("backward");
  const std::string_view word = backward ? "backward" : std::string_view(entry.category);
  const auto* const found = std::ranges::find(categories, word, &BarKind::name);
  return found == categories.end() ? 0 : static_cast<std::size_t>(found - categories.begin());
}

std::vector<std::string> rows_of(const std::vector<TimelineEntry>& entries) {
  std::vector<std::string> rows;
  for (const TimelineEntry& entry : entries) {
    if (std::ranges::find(rows, entry.resource) == rows.end()) rows.push_back(entry.resource);
  }
  std::stable_partition(rows.begin(), rows.end(), [](const std::string& row) { return row.starts_with("cpu"); });
  return rows;
}

/// Joins a bar to the one before it where neither can be seen apart.
void add_bar(std::vector<Bar>& bars, Bar bar) {
  if (!bars.empty()) {
    Bar& last = bars.back();
    const bool neighbours = last.row == bar.row && last.category == bar.category && bar.begin - last.end < narrow;
    const double seen_apart = 1.01 * narrow;
    if (neighbours && (bar.end - bar.begin < seen_apart || last.end - last.begin < seen_apart)) {
      last.end = std::max(last.end, bar.end);
      last.name.clear();
      return;
    }
  }
  bars.push_back(std::move(bar));
}

std::vector<Bar> bars_of(const TimelineFigure& timeline, const std::vector<std::string>& rows, Seconds until) {
  std::vector<Bar> bars;
  const Seconds span = until - timeline.from;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const TimelineEntry& entry : timeline.entries) {
      const Seconds end = entry.start + entry.duration;
      if (entry.resource != rows[row] || end <= timeline.from || entry.start >= until) continue;
      const auto pixel = [&](Seconds date) {
        return std::clamp((date - timeline.from) / span, 0.0, 1.0) * timeline.pixels;
      };
      const double begin = pixel(entry.start);
      add_bar(bars, {row, category_of(entry), begin, std::max(pixel(end), begin + narrow), entry.name});
    }
  }
  return bars;
}

}  // namespace

Figure to_figure(const TimelineFigure& timeline) {
  Seconds until;
  for (const TimelineEntry& entry : timeline.entries) until = std::max(until, entry.start + entry.duration);
  until = std::min(until, timeline.until);
  if (!(until > timeline.from)) throw UsageError("nothing happens in this time: " + timeline.title);
  const std::vector<std::string> rows = rows_of(timeline.entries);
  const auto row_place = [&](std::size_t row) { return static_cast<double>(rows.size() - row); };
  const TimeUnit unit = time_unit(until);
  Panel panel{.title = timeline.title,
              .width = timeline.pixels,
              .height = row_height * static_cast<int>(rows.size()),
              .rows = true,
              .edge = "#ffffff"};
  panel.x = {.name = fmt::format("time ({})", unit.name),
             .low = timeline.from / unit.size,
             .high = until / unit.size,
             .grid = true};
  panel.y = {.low = 0.5, .high = static_cast<double>(rows.size()) + 0.5};
  for (std::size_t row = 0; row < rows.size(); ++row) panel.y.tics.push_back({row_place(row), rows[row]});
  std::vector<Series> kinds;
  kinds.reserve(categories.size());
  const bool passes = std::ranges::any_of(timeline.entries, [](const auto& entry) { return category_of(entry) == 1; });
  for (const BarKind& category : categories) {
    kinds.push_back({.name = std::string(category.name), .colour = category.colour});
  }
  if (passes) kinds.front().name = "forward";
  for (const Bar& bar : bars_of(timeline, rows, until)) {
    const auto date = [&](double pixels) {
      return panel.x.low + (panel.x.high - panel.x.low) * pixels / timeline.pixels;
    };
    const double row = row_place(bar.row);
    kinds[bar.category].boxes.push_back({date(bar.begin), date(bar.end), row - bar_share, row + bar_share});
    kinds[bar.category].what.push_back(bar.name);
    if (bar.name.empty()) continue;
    panel.labels.push_back({.text = bar.name,
                            .x = date(0.5 * (bar.begin + bar.end)),
                            .y = row,
                            .colour = categories[bar.category].text_colour,
                            .font = label_font,
                            .room = date(bar.end) - date(bar.begin)});
  }
  std::ranges::copy_if(kinds, std::back_inserter(panel.series), [](const Series& kind) { return !kind.boxes.empty(); });
  return {.panels = {std::move(panel)}};
}

}  // namespace foretrain
