#include "reports/figure/plot_cases.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("Measured cases become lines through points, in the order of the axis") {
  CaseFigure cases{"nic bandwidth (Mbit/s)", {}};
  add_point(cases, "lenet", "ring", {1000.0, "1000", Seconds(0.02), Seconds(0.03)});
  add_point(cases, "lenet", "ring", {100.0, "100", Seconds(0.2), Seconds(0.25)});
  add_point(cases, "lenet", "server", {100.0, "100", Seconds(0.4), Seconds(0.4)});
  const Figure figure = to_figure(cases);
  REQUIRE(figure.panels.size() == 1);
  const Panel& panel = figure.panels.front();
  CHECK(panel.title == "lenet");
  // The server's one point is no curve. Of the ring, a line of predictions, then the points, in milliseconds.
  REQUIRE(panel.series.size() == 2);
  CHECK(panel.series[0].name == "ring");
  CHECK(figure.legend == Legend::shared);
  REQUIRE(panel.series[0].points.size() == 2);
  CHECK(panel.series[0].points[0].x == 100.0);
  CHECK(panel.series[0].points[0].y == Approx(200.0));
  CHECK(panel.series[1].points[1].y == Approx(30.0));
  CHECK(panel.x.logarithmic);
}

TEST_CASE("A table of single points makes no picture") {
  CaseFigure cases{"data", {}};
  add_point(cases, "lenet", "ring", {2.0, "2", Seconds(0.02), Seconds(0.03)});
  CHECK(to_figure(cases).panels.empty());
}
