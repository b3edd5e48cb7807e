// Layout of pictures, in pixels: a letter of size f takes 0.59 f, rounded up for each text.
#include "reports/figure/layout.hpp"

#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {

namespace {

std::string layout_words(const Figure& figure) {
  const Canvas canvas = lay_out(figure);
  std::string words = fmt::format("\n{} x {} <{}>", canvas.width, canvas.height, canvas.title);
  if (canvas.legend == Legend::shared)
    words += fmt::format(" legend {},{} {} wide", canvas.legend_left, canvas.legend_top, canvas.legend_width);
  for (const auto& [panel, x, y] : canvas.panels) {
    words += fmt::format("\n{},{} {} x {} <{}>\n  <{}>", x, y, panel.width, panel.height, panel.title, panel.subtitle);
    if (canvas.legend == Legend::shared) continue;
    for (const Entry& entry : entries_of({&panel}, canvas.legend == Legend::above ? panel.width : 0))
      words += fmt::format(" {}@{},{}", entry.series->name, entry.x, entry.line);
  }
  return words + "\n";
}

Series line(const std::string& name, std::vector<Point> points, bool at_end = false) {
  return {.name = name, .at_end = at_end, .points = std::move(points), .line = 2.0};
}

Panel panel(const std::string& title, std::vector<Series> series, const std::string& subtitle = "") {
  return {.title = title,
          .subtitle = subtitle,
          .width = 300,
          .height = 200,
          .x = {.name = "across"},
          .y = {.name = "up", .high = 10.0},
          .series = std::move(series)};
}

const std::vector<Point> rising = {{1.0, 2.0}, {2.0, 8.0}};

}  // namespace

TEST_CASE("A panel has room around it for its labels, names, title and legend") {
  CHECK(layout_words({.panels = {panel("title", {line("one", rising), line("two", rising)}, "below it")}}) == R"(
408 x 337 <>
80,75 300 x 200 <title>
  <below it> one@0,0 two@70,0
)");
  CHECK(layout_words({.panels = {panel("", {line("at its end", rising, true)})}}) == R"(
479 x 290 <>
80,28 300 x 200 <>
  <>
)");
  CHECK(layout_words({.panels = {panel("", {line("beside", rising)})}, .legend = Legend::beside}) == R"(
499 x 276 <>
80,14 300 x 200 <>
  <> beside@0,0
)");
}

TEST_CASE("Panels of a row begin at one height, those of a column at one distance from the left", "[golden]") {
  Figure figure{.title = "all of them", .panels = {}, .columns = 2};
  figure.panels = {panel("first", {line("one", rising)}), panel("second", {line("one", rising)}, "subtitle"),
                   panel("", {line("one", rising)}),
                   panel("a title that reaches beyond its panel, so it does", {line("two", rising)})};
  figure.panels[2].height = 100;
  figure.panels[2].y.tics = {{5.0, "1,000,000,000"}};
  figure.panels[1].width = 200;
  check_whole("panels-row-begin-at-one.txt", layout_words(figure));
  figure.legend = Legend::shared;
  check_whole("panels-row-begin-at-one-2.txt", layout_words(figure));
  figure.panels.resize(3);
  figure.columns = 100;
  figure.title = "";
  check_whole("panels-row-begin-at-one-3.txt", layout_words(figure));
}

TEST_CASE("What gnuplot draws of a series: data, and how", "[golden]") {
  const auto script = [](Series series) {
    series.colour = palette[1];
    return series_script(series, "noborder", "$p");
  };
  Series both = line("", {{1.0, 2.0}, {2.0, NAN}, {3.0, 4.0, 2.0}});
  both.dot = Dot::own;
  both.ranges = {{1.5, 2.5}, {}, {3.0, 5.0}};
  std::string clauses = script(both).clauses;
  for (std::size_t at; (at = clauses.find(", $")) != std::string::npos;) clauses.replace(at, 2, ",\n");
  for (std::size_t at; (at = clauses.find(" with ")) != std::string::npos;) clauses.replace(at, 6, "\nwith:");
  check_whole("gnuplot-draws-series-data-how.txt", "\n" + script(both).data + clauses + "\n");
  const SeriesScript boxes = script({.boxes = {{1.0, 2.0, 3.0, 4.0}}});
  CHECK(boxes.data == "$p << END\n1 3 1 2 3 4\nEND\n");
  CHECK(boxes.clauses ==
        "$p using 1:2:3:4:5:6 with boxxyerror linewidth 0.5 fillstyle solid 1 noborder fillcolor rgb '#D55E00'");
  const SeriesScript area = script({.boxes = {{1.0, 2.0, 3.0, 4.0}}, .joined = true});
  CHECK(area.data == "$p << END\n1 3 4\n2 3 4\nEND\n");
  CHECK(area.clauses == "$p using 1:2:3 with filledcurves fillstyle solid 1 noborder fillcolor rgb '#D55E00'");
  CHECK(script({.points = rising, .line = 1.0, .dashed = true}).clauses ==
        "$p using 1:2 with lines linewidth 1 linecolor rgb '#D55E00' dashtype (4,4)");
  CHECK(script({.points = rising, .line = 1.0}).clauses ==
        "$p using 1:2 with lines linewidth 1 linecolor rgb '#D55E00' dashtype (14,5)");
  CHECK(script({.points = rising, .dot = Dot::ring}).clauses ==
        "$p using 1:2:3 with points pointtype 6 pointsize variable linewidth 2 linecolor rgb '#D55E00'");
}

}  // namespace foretrain::test
