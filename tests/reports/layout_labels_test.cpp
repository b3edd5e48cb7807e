// Labels find places that cover nothing: looked at pixel by pixel, on panels drawn at random.
#include "reports/figure/layout.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

Box covered_by(const Label& label, const Panel& panel) {
  const double width = text_width(label.text, label.font), x = panel.x.place(label.x) * panel.width + label.right,
               y = panel.y.place(label.y) * panel.height + label.up;
  const double left = label.pin == Pin::left ? x : label.pin == Pin::middle ? x - width / 2 : x - width;
  return {left, left + width, y - 6.0, y + 6.0};
}

bool apart(const Box& a, const Box& b) {
  return a.right <= b.left || b.right <= a.left || a.high <= b.low || b.high <= a.low;
}

/// Squares of nine pixels around dots, and pixels of the lines between them.
std::vector<Box> drawn_of(const Series& series, const Panel& panel) {
  std::vector<Box> drawn;
  const auto add = [&](double x, double y, double half) {
    const double right = panel.x.place(x) * panel.width, up = panel.y.place(y) * panel.height;
    drawn.push_back({right - half, right + half, up - half, up + half});
  };
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const Point& at = series.points[i];
    add(at.x, at.y, 4.0);
    for (int part = 0; part <= 1000 && i > 0 && series.line > 0.0; ++part) {
      const Point& before = series.points[i - 1];
      add(before.x + (at.x - before.x) * part / 1000.0, before.y + (at.y - before.y) * part / 1000.0, 0.01);
    }
  }
  return drawn;
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
    std::vector<Box> taken = drawn_of(panel.series[0], panel);
    for (const Label& label : panel.labels) {
      const Box box = covered_by(label, panel);
      INFO(label.text);
      if (label.free) {
        CHECK((box.left >= 0.0 && box.right <= panel.width && box.low >= 0.0 && box.high <= panel.height));
        CHECK(std::ranges::all_of(taken, [&](const Box& other) { return apart(box, other); }));
      }
      taken.push_back(box);
    }
    const Box fixed = covered_by(panel.labels.back(), panel);
    for (const Label& label : panel.labels) CHECK((!label.free || apart(covered_by(label, panel), fixed)));
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
