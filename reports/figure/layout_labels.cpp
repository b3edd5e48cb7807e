#include <algorithm>
#include <cmath>
#include <tuple>

#include "reports/figure/layout.hpp"

namespace foretrain {

namespace {

/// Half the size of a dot, and half of what lies between two boxes along a line, in pixels.
constexpr double half_dot = 5.0, half_step = 3.0, half_line = 6.0;

/// Share of a text that lies left of its position.
double share_before(Pin pin) { return pin == Pin::left ? 0.0 : pin == Pin::middle ? 0.5 : 1.0; }

bool meet(const Box& a, const Box& b) {
  return a.left < b.right && b.left < a.right && a.low < b.high && b.low < a.high;
}

/// Pixels from the plot's lower left corner.
Point pixels_of(const Panel& panel, double x, double y) {
  return {panel.x.place(x) * panel.width, panel.y.place(y) * panel.height};
}

/// The line between two points as small boxes along it.
void add_line(std::vector<Box>& taken, Point from, Point to) {
  const int count = std::max(1, static_cast<int>(std::hypot(to.x - from.x, to.y - from.y) / half_step));
  for (int i = 0; i <= count; ++i) {
    const double share = static_cast<double>(i) / count;
    const double x = from.x + share * (to.x - from.x), y = from.y + share * (to.y - from.y);
    taken.push_back({x - half_step, x + half_step, y - half_step, y + half_step});
  }
}

std::vector<Box> obstacles(const Panel& panel) {
  std::vector<Box> taken;
  for (const Series& series : panel.series) {
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      if (!std::isfinite(series.points[i].y)) continue;
      const Point at = pixels_of(panel, series.points[i].x, series.points[i].y);
      if (series.dot != Dot::none)
        taken.push_back({at.x - half_dot, at.x + half_dot, at.y - half_dot, at.y + half_dot});
      if (i == 0 || series.line <= 0.0 || !std::isfinite(series.points[i - 1].y)) continue;
      add_line(taken, pixels_of(panel, series.points[i - 1].x, series.points[i - 1].y), at);
    }
  }
  for (const Label& label : panel.labels) {
    if (label.free) continue;
    const double width = text_width(label.text, label.font);
    const double left = panel.x.place(label.x) * panel.width + label.right - share_before(label.pin) * width;
    const double up = panel.y.place(label.y) * panel.height + label.up;
    taken.push_back({left, left + width, up - half_line, up + half_line});
  }
  return taken;
}

/// Finds a place for the label, which is taken from then on.
bool find_place(Label& label, const Panel& panel, std::vector<Box>& taken) {
  const Point at = pixels_of(panel, label.x, label.y);
  const int width = text_width(label.text, label.font);
  for (const auto& [pin, right, up] :
       {std::tuple(Pin::left, 9, 0), std::tuple(Pin::right, -9, 0), std::tuple(Pin::middle, 0, 13),
        std::tuple(Pin::middle, 0, -13), std::tuple(Pin::left, 12, -8), std::tuple(Pin::right, -12, 8),
        std::tuple(Pin::left, 14, -16), std::tuple(Pin::right, -14, 16), std::tuple(Pin::middle, 0, 22),
        std::tuple(Pin::middle, 0, -22)}) {
    const double left = at.x + right - share_before(pin) * width;
    const Box box{left, left + width, at.y + up - half_line, at.y + up + half_line};
    const bool outside = box.left < 0.0 || box.right > panel.width || box.low < 0.0 || box.high > panel.height;
    if (outside || std::ranges::any_of(taken, [&](const Box& other) { return meet(box, other); })) continue;
    taken.push_back(box);
    label.pin = pin;
    label.right = right;
    label.up = up;
    return true;
  }
  return false;
}

}  // namespace

void place_free_labels(Panel& panel) {
  if (std::ranges::none_of(panel.labels, &Label::free)) return;
  std::vector<Box> taken = obstacles(panel);
  std::erase_if(panel.labels, [&](Label& label) { return label.free && !find_place(label, panel, taken); });
}

}  // namespace foretrain
