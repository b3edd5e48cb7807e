// Labels find places that cover nothing: looked at pixel by pixel, on panels drawn at random.
#include "reports/figure/layout.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

struct Covered {
  double left, right, low, high;
  [[nodiscard]] bool holds(double x, double y) const { return x > left && x < right && y > low && y < high; }
};

Covered covered_by(const Label& label, const Panel& panel) {
  const double width = text_width(label.text, label.font), x = panel.x.place(label.x) * panel.width + label.right,
               y = panel.y.place(label.y) * panel.height + label.up;
  const double left = label.pin == Pin::left ? x : label.pin == Pin::middle ? x - width / 2 : x - width;
  return {left, left + width, y - 6.0, y + 6.0};
}

/// Pixels of dots (a square of nine) and of the lines between them.
std::vector<Point> pixels_of(const Series& series, const Panel& panel) {
  std::vector<Point> pixels;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const auto place = [&](const Point& point) {
      return Point{panel.x.place(point.x) * panel.width, panel.y.place(point.y) * panel.height};
    };
    const Point at = place(series.points[i]);
    for (int right = -4; right <= 4; ++right) {
      for (int up = -4; up <= 4; ++up) pixels.push_back({at.x + right, at.y + up});
    }
    if (i == 0 || !(series.line > 0.0)) continue;
    const Point before = place(series.points[i - 1]);
    for (int part = 0; part <= 1000; ++part) {
      pixels.push_back({before.x + (at.x - before.x) * part / 1000.0, before.y + (at.y - before.y) * part / 1000.0});
    }
  }
  return pixels;
}

Panel empty_panel() {
  return {.width = 300, .height = 180, .x = {.low = 0.0, .high = 1.0}, .y = {.low = 0.0, .high = 1.0}};
}

Panel random_panel(std::mt19937& chance, double line) {
  Panel panel = empty_panel();
  Series series{.line = line, .dot = Dot::circle};
  std::uniform_real_distribution<double> place(0.0, 1.0);
  for (int i = 0; i < 25; ++i) {
    const double x = place(chance), y = place(chance);
    series.points.push_back({x, y});
    panel.labels.push_back({.text = "point " + std::to_string(i), .x = x, .y = y, .free = true});
  }
  panel.labels.push_back({.text = "does not move", .x = 0.5, .y = 0.5});
  panel.series.push_back(series);
  return panel;
}

}  // namespace

TEST_CASE("Labels that move cover no dot, no line, none of each other, and stay inside") {
  std::mt19937 chance(7);
  for (int trial = 0; trial < 20; ++trial) {
    const bool lines = trial % 4 == 3;
    Panel panel = random_panel(chance, lines ? 1.5 : 0.0);
    place_free_labels(panel);
    INFO(trial);
    CHECK(panel.labels.size() > (lines ? 1U : 10U));  // most of the places are taken by twenty-five lines
    const std::vector<Point> drawn = pixels_of(panel.series[0], panel);
    for (std::size_t i = 0; i < panel.labels.size(); ++i) {
      const Label& label = panel.labels[i];
      if (!label.free) continue;
      const Covered box = covered_by(label, panel);
      INFO(label.text);
      CHECK(box.left >= 0.0);
      CHECK(box.right <= panel.width);
      CHECK(box.low >= 0.0);
      CHECK(box.high <= panel.height);
      CHECK(std::none_of(drawn.begin(), drawn.end(), [&](const Point& p) { return box.holds(p.x, p.y); }));
      for (std::size_t j = 0; j < panel.labels.size(); ++j) {
        const Covered other = covered_by(panel.labels[j], panel);
        CHECK((i == j || box.right <= other.left || other.right <= box.left || box.high <= other.low ||
               other.high <= box.low));
      }
    }
  }
}

TEST_CASE("A label that fits nowhere is left out, and one alone stands right of its dot") {
  Panel panel = empty_panel();
  panel.labels = {{.text = "short", .x = 0.5, .y = 0.5, .free = true},
                  {.text = std::string(200, 'w'), .x = 0.5, .y = 0.5, .free = true}};
  place_free_labels(panel);
  REQUIRE(panel.labels.size() == 1);
  CHECK(panel.labels[0].text == "short");
  CHECK(panel.labels[0].pin == Pin::left);
  CHECK(panel.labels[0].right == 9);
  CHECK(panel.labels[0].up == 0);
}

}  // namespace foretrain::test
