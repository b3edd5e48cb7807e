#include "reports/figure/sketch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace foretrain {

namespace {

struct BoxColour {
  std::string_view kind, colour;
};
/// Light enough for dark letters; as far apart in grey as that leaves room for.
constexpr std::array<BoxColour, 5> box_colours = {
    {{"cpu", "#E6BAD4"}, {"switch", "#D4D4D4"}, {"gpu", "#8CCBF0"}, {"nic", "#F5EA7A"}, {"nvswitch", "#9AD9BE"}}};

std::string_view colour_of(std::string_view kind) {
  const auto* const found = std::ranges::find(box_colours, kind, &BoxColour::kind);
  return found == box_colours.end() ? "#ffffff" : found->colour;
}

bool fits(const std::string& label, double width) { return text_width(label, Sketch::font) <= width - 1.0; }

/// Places are counted downwards, axes upwards.
Point point_at(Spot spot) { return {spot.x, -spot.y}; }

}  // namespace

Series& Sketch::boxes_of(std::string_view kind) {
  const auto found = std::ranges::find(boxes_, colour_of(kind), &Series::colour);
  return found != boxes_.end() ? *found : boxes_.emplace_back(Series{.colour = colour_of(kind)});
}

bool Sketch::box(std::string_view kind, Spot corner, double width, double height, const std::string& label) {
  boxes_of(kind).boxes.push_back({corner.x, corner.x + width, -corner.y - height, -corner.y});
  const std::size_t digits = label.find_first_of("0123456789");
  const std::string number = digits == std::string::npos ? "" : label.substr(digits);
  const std::string& shown = fits(label, width) ? label : number;
  if (fits(shown, width)) text({corner.x + width / 2, corner.y + height / 2}, shown, Pin::middle);
  return fits(label, width);
}

void Sketch::name_boxes(std::string_view kind, const std::string& name) {
  const auto found = std::ranges::find(boxes_, colour_of(kind), &Series::colour);
  if (found != boxes_.end()) found->name = name;
}

void Sketch::line(const std::string& series, const std::vector<Spot>& spots) {
  auto found = std::ranges::find(lines_, series, &Series::name);
  if (found == lines_.end()) {
    lines_.push_back({.name = series, .colour = palette[lines_.size() % palette.size()], .line = 1.4});
    found = lines_.end() - 1;
  }
  for (const Spot spot : spots) found->points.push_back(point_at(spot));
  found->points.push_back({0.0, std::numeric_limits<double>::quiet_NaN()});
}

void Sketch::arc(const std::string& series, Spot from, double to, double height, bool above) {
  constexpr int steps = 24;
  std::vector<Spot> spots;
  const double middle = (from.x + to) / 2, radius = (to - from.x) / 2;
  for (int i = 0; i <= steps; ++i) {
    const double angle = std::numbers::pi * i / steps;
    spots.push_back({middle - radius * std::cos(angle), from.y + (above ? -height : height) * std::sin(angle)});
  }
  line(series, spots);
}

void Sketch::text(Spot at, const std::string& text, Pin pin) {
  if (!text.empty()) labels_.push_back({.text = text, .x = at.x, .y = -at.y, .pin = pin, .font = font});
}

Panel Sketch::panel(int width, int height) && {
  Panel panel{.width = width, .height = height};
  panel.x = {.low = 0.0, .high = static_cast<double>(width), .tics = {{0.0, ""}}};
  panel.y = {.low = -static_cast<double>(height), .high = 0.0, .tics = {{0.0, ""}}};
  panel.series = std::move(lines_);
  panel.series.insert(panel.series.end(), boxes_.begin(), boxes_.end());
  panel.labels = std::move(labels_);
  panel.rows = true;
  panel.bare = true;
  panel.edge = "#6b6b6b";
  return panel;
}

}  // namespace foretrain
