// Drawings of boxes and lines, tics and ranges of axes, tables of rooflines: small ones as wholes.
#include "reports/figure/sketch.hpp"

#include "reports/studies/roofline.hpp"
#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {
namespace {

std::string words_of(const std::vector<Tic>& tics) {
  std::string words;
  for (const Tic& tic : tics) words += fmt::format("{}{:.6g}={}", words.empty() ? "" : " ", tic.at, tic.label);
  return words;
}

std::string range_of(const std::vector<double>& values, bool upward, bool logarithmic = false) {
  Axis axis{.logarithmic = logarithmic};
  set_range(axis, values, upward);
  return fmt::format("{:.6g}..{:.6g}", axis.low, axis.high);
}

}  // namespace

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

TEST_CASE("Prefixes begin where a number has one digit before the point, and end with tera and nano") {
  CHECK(si_text(1e-3, "") == "0.001");
  CHECK(si_text(9e-4, "") == "900 µ");
  CHECK(si_text(999999.0, "") == "999999");
  CHECK(si_text(1e6, "") == "1 M");
  CHECK(si_text(0.0, "") == "0");
  CHECK(si_text(0.0, "s") == "0 s");
  CHECK(si_text(1000.0, "B") == "1 kB");
  CHECK(si_text(999.0, "B") == "999 B");
  CHECK(si_text(1e15, "B") == "1000 TB");
  CHECK(si_text(1e-12, "s") == "0.001 ns");
  CHECK(si_text(1e-9, "s") == "1 ns");
  CHECK(grow_by_factors({1.0, 4.0}));
  CHECK_FALSE(grow_by_factors({1.0, 3.9}));
  CHECK_FALSE(grow_by_factors({-1.0, 4.0, 16.0}));
  CHECK(grow_by_factors({1.0, 2.0, 5.0, 10.0}));
  std::vector<std::string> bare = {"1 MB", "25"};
  CHECK(common_unit(bare).empty());
  CHECK(bare.front() == "1 MB");
}

TEST_CASE("Ranges have room around what is finite, whatever is there") {
  const double none = std::numeric_limits<double>::quiet_NaN(), far = std::numeric_limits<double>::infinity();
  CHECK(range_of({none, far}, false) == "0.5..1.5");
  CHECK(range_of({none, far}, true) == "0..1.07");
  CHECK(range_of({none, 4.0, 4.0}, false) == "3.5..4.5");
  CHECK(range_of({0.0, 0.0}, true) == "0..1");
  CHECK(range_of({-2.0, -1.0}, true) == "0..1");
  CHECK(range_of({-10.0, 40.0}, false) == "-11..41");
  CHECK(range_of({-1.0, 0.0}, false, true) == "0.925926..1.08");
  CHECK(range_of({100.0, 100.0}, false, true) == "92.5926..108");
  CHECK(range_of({1.0, 1e10}, false, true) == "0.630957..1.58489e+10");
  CHECK(range_of({1.0, 10.0}, true, true) == "0.714286..14");
}

TEST_CASE("Tics are round, as many as have room, and those at both ends are there") {
  CHECK(words_of(logarithmic_tics(1.0, 1000.0)) == "1=1 2=2 5=5 10=10 20=20 50=50 100=100 200=200 500=500 1000=1000");
  CHECK(words_of(logarithmic_tics(1.0, 1001.0)) == "1=1 10=10 100=100 1000=1000");
  CHECK(words_of(logarithmic_tics(2.0, 5.0)) == "2=2 5=5");
  CHECK(words_of(binary_tics(1024.0, 4096.0)) == "1024=1.00 KiB 2048=2.00 KiB 4096=4.00 KiB");
  CHECK(words_of(linear_tics(0.0, 10.0, 5)) == "0=0 2=2 4=4 6=6 8=8 10=10");
  CHECK(words_of(linear_tics(0.0, 10.0, 4)) == "0=0 5=5 10=10");
  CHECK(words_of(linear_tics(10.0, 0.0, 4)) == "0=0 5=5 10=10");
  CHECK(words_of(linear_tics(0.0, 9.0, 1)) == "0=0");
  CHECK(words_of(linear_tics(0.0, 1.0, 0)) == "0=0 1=1");
  CHECK(words_of(linear_tics(0.0, 0.3, 3)) == "0=0.0 0.1=0.1 0.2=0.2 0.3=0.3");
  CHECK(words_of(linear_tics(-0.02, 0.02, 4)) == "-0.02=-0.02 -0.01=-0.01 0=0.00 0.01=0.01 0.02=0.02");
  const auto chosen = [](Axis axis, int pixels, bool across) {
    choose_tics(axis, pixels, across);
    return axis.tics.size();
  };
  const Axis hundred{.low = 0.0, .high = 100.0};
  CHECK(chosen(hundred, 10'000, false) == 6);  // at most eight steps: twenties
  CHECK(chosen(hundred, 10'000, true) == 11);  // at most ten: tens
  CHECK(chosen(hundred, 10, false) == 3);      // at least two: fifties
  CHECK(chosen(hundred, 5 * 3 * hundred.font, false) == 6);
  CHECK(chosen(hundred, 5 * 3 * hundred.font - 1, false) == 3);
  Axis thousands{.tics = {{1000.0, "1000"}}};
  thousands.high = 2000.0;
  choose_tics(thousands, 100, false);
  CHECK(thousands.tics.front().label == "1,000");
}

TEST_CASE("Curves' labels that meet are one cluster, others stay") {
  CHECK(spread({}, 1.0, 0.0, 1.0).empty());
  CHECK(spread({0.5}, 3.0, 0.0, 1.0) == std::vector<double>{0.5});
  CHECK(spread({2.0}, 3.0, 0.0, 1.0) == std::vector<double>{1.0});
  CHECK(spread({1.0, 2.0, 7.0}, 1.0, 0.0, 10.0) == std::vector<double>{1.0, 2.0, 7.0});
  // 5 and 5 become 4 and 6, which meets 6.5: all three lie around (5 + 3 + 2.5) / 3 = 3.5.
  CHECK(spread({5.0, 5.0, 6.5}, 2.0, 0.0, 10.0) == std::vector<double>{3.5, 5.5, 7.5});
  CHECK(spread({0.5, 0.5}, 2.0, 0.0, 10.0) == std::vector<double>{0.0, 2.0});
}

TEST_CASE("A roofline's table tells shares of the roof where there is arithmetic", "[golden]") {
  RooflinePanel panel{"x100", BytesPerSecond(1e12), {{"fp32", FlopsPerSecond(1e13)}}, {}, {}};
  for (int p = 0; p < precision_count; ++p) panel.peaks.emplace_back(static_cast<Precision>(p), FlopsPerSecond(1e13));
  // 100 FLOP a byte below the flat roof, half of it; 1 FLOP a byte below the slope, a quarter of that.
  panel.points = {{"product", Precision::fp32, Flops(1e13), Bytes(1e11), Seconds(2.0), "compute"},
                  {"sum", Precision::fp32, Flops(1e12), Bytes(1e12), Seconds(4.0), "memory"},
                  {"copy", Precision::fp32, Flops(0.0), Bytes(1e12), Seconds(1.0), "memory"}};
  RooflinePanel empty = panel;
  empty.gpu = "y";
  empty.points.clear();
  check_whole("rooflines-table-tells-shares-roof.txt", to_text(RooflineFigure{{panel, empty}}));
}

}  // namespace foretrain::test
