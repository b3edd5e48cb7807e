// Drawings of boxes and lines: small ones as wholes.
#include "reports/figure/sketch.hpp"

#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {
TEST_CASE("A sketch has lines of a colour each below boxes of a colour a kind, and labels that fit", "[golden]") {
  Sketch sketch;
  // "gpu12" in ten pixels is 30 wide, "12" is 12, and a pixel stays free.
  CHECK(sketch.box("gpu", {10.0, 20.0}, 31.0, 22.0, "gpu12"));
  CHECK_FALSE(sketch.box("gpu", {50.0, 20.0}, 30.9, 22.0, "gpu12"));
  CHECK_FALSE(sketch.box("cpu", {90.0, 20.0}, 13.0, 10.0, "gpu12"));
  CHECK_FALSE(sketch.box("else", {110.0, 20.0}, 12.9, 10.0, "gpu12"));
  CHECK_FALSE(sketch.box("gpu", {130.0, 20.0}, 6.0, 10.0, "switch"));
  sketch.name_boxes("gpu", "GPUs");
  sketch.name_boxes("nic", "cards");
  sketch.line("a", {{1.0, 2.0}, {3.0, 4.0}});
  sketch.line("b", {{5.0, 6.0}});
  sketch.line("a", {{7.0, 8.0}});
  sketch.text({1.0, 2.0}, "", Pin::left);
  sketch.text({1.0, 2.0}, "words", Pin::left);
  check_whole("sketch-lines-colour-each-below.txt", panel_words(std::move(sketch).panel(200, 100)));
  Sketch arcs;
  arcs.arc("over", {0.0, 50.0}, 100.0, 20.0, true);
  arcs.arc("below", {0.0, 50.0}, 100.0, 20.0, false);
  const Panel panel = std::move(arcs).panel(100, 100);
  for (const bool below : {false, true}) {
    const std::vector<Point>& points = panel.series[below ? 1 : 0].points;
    REQUIRE(points.size() == 26);
    CHECK(points[0].x == Approx(0.0).margin(1e-9));
    CHECK(points[12].x == Approx(50.0));
    CHECK(points[12].y == Approx(below ? -70.0 : -30.0));
    CHECK(points[24].x == Approx(100.0));
    for (std::size_t i = 0; i < 25; ++i) {  // an ellipse: (x / 50)² + (y / 20)² = 1
      CHECK(std::pow((points[i].x - 50.0) / 50.0, 2) + std::pow((points[i].y + 50.0) / 20.0, 2) == Approx(1.0));
    }
  }
}

}  // namespace foretrain::test
