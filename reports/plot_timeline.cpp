#include "reports/plot_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace foretrain {

namespace {

// Pixels.
constexpr int plot_width = 760, row_height = 30, label_font = 11;
constexpr double narrow = 1.5;      // two such bars with as little between them are one
constexpr double bar_share = 0.37;  // of a row, on both sides of its middle

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> categories = {{{"compute", palette[0]},
                                                                                      {"communication", palette[1]},
                                                                                      {"host", palette[2]},
                                                                                      {"optimizer", palette[3]},
                                                                                      {"data", palette[4]}}};

struct Bar {
  std::size_t row = 0, category = 0;
  double begin = 0.0, end = 0.0;  // pixels from the left of the plot
  std::string name;               ///< empty where several are one
};

std::size_t category_of(const TimelineEntry& entry) {
  for (std::size_t i = 0; i < categories.size(); ++i) {
    if (categories[i].first == entry.category) return i;
  }
  return 0;
}

std::vector<std::string> rows_of(const std::vector<TimelineEntry>& entries) {
  std::vector<std::string> rows;
  for (const TimelineEntry& entry : entries) {
    if (std::find(rows.begin(), rows.end(), entry.resource) == rows.end()) rows.push_back(entry.resource);
  }
  std::stable_partition(rows.begin(), rows.end(), [](const std::string& row) { return row.starts_with("cpu"); });
  return rows;
}

/// Joins a bar to the one before it where neither can be seen apart.
void add_bar(std::vector<Bar>& bars, Bar bar) {
  if (!bars.empty()) {
    Bar& last = bars.back();
    const bool neighbours = last.row == bar.row && last.category == bar.category && bar.begin - last.end < narrow;
    if (neighbours && (bar.end - bar.begin < narrow || last.end - last.begin < narrow)) {
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
      const auto pixel = [&](Seconds date) { return std::clamp((date - timeline.from) / span, 0.0, 1.0) * plot_width; };
      add_bar(bars, {row, category_of(entry), pixel(entry.start), pixel(end), entry.name});
    }
  }
  return bars;
}

}  // namespace

Figure to_figure(const TimelineFigure& timeline) {
  Seconds until;
  for (const TimelineEntry& entry : timeline.entries) until = std::max(until, entry.start + entry.duration);
  until = std::min(until, timeline.until);
  if (!(until > timeline.from)) throw std::invalid_argument("nothing happens in this time: " + timeline.title);
  const std::vector<std::string> rows = rows_of(timeline.entries);
  const auto row_place = [&](std::size_t row) { return static_cast<double>(rows.size() - row); };
  const TimeUnit unit = time_unit(until);
  Panel panel{.title = timeline.title,
              .width = plot_width,
              .height = row_height * static_cast<int>(rows.size()),
              .edge = "#ffffff"};
  panel.x = {.name = fmt::format("time ({})", unit.name),
             .low = timeline.from / unit.size,
             .high = until / unit.size,
             .grid = true};
  panel.y = {.low = 0.5, .high = static_cast<double>(rows.size()) + 0.5};
  for (std::size_t row = 0; row < rows.size(); ++row) panel.y.tics.push_back({row_place(row), rows[row]});
  std::vector<Series> kinds;
  kinds.reserve(categories.size());
  for (const auto& [category, colour] : categories) kinds.push_back({.name = std::string(category), .colour = colour});
  for (const Bar& bar : bars_of(timeline, rows, until)) {
    const auto date = [&](double pixels) { return panel.x.low + (panel.x.high - panel.x.low) * pixels / plot_width; };
    const double row = row_place(bar.row);
    kinds[bar.category].boxes.push_back({date(bar.begin), date(bar.end), row - bar_share, row + bar_share});
    if (bar.name.empty() || text_width(bar.name, label_font) + 6 > bar.end - bar.begin) continue;
    panel.labels.push_back(
        {.text = bar.name, .x = date(0.5 * (bar.begin + bar.end)), .y = row, .colour = "#ffffff", .font = label_font});
  }
  std::ranges::copy_if(kinds, std::back_inserter(panel.series), [](const Series& kind) { return !kind.boxes.empty(); });
  return {.panels = {std::move(panel)}};
}

}  // namespace foretrain
