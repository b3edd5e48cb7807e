#include "reports/figure/bandwidth.hpp"

#include "model/base/error.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

BandwidthFigure figure() {
  // 1 MB in 1 ms and 1 GB in 100 ms; the ring is not known for the larger.
  return {{Bytes(1e6), Bytes(1e9)},
          {{"a machine",
            "all_reduce, 2 GPUs",
            {{"auto",
              {BandwidthPoint{Bytes(1e6), Seconds(1e-3), BytesPerSecond(1e9)},
               BandwidthPoint{Bytes(1e9), Seconds(0.1), BytesPerSecond(10e9)}}},
             {"ring", {BandwidthPoint{Bytes(1e6), Seconds(2e-3), BytesPerSecond(0.5e9)}, std::nullopt}}},
            {{Bytes(1e9), Seconds(0.11), BytesPerSecond(9e9)}}}}};
}

}  // namespace

TEST_CASE("A bandwidth table has a row per size and two columns per algorithm") {
  const std::string text = to_text(figure());
  for (const char* piece : {"a machine: all_reduce, 2 GPUs", "1.00 MB", "1.00 ms", "1.00 GB/s", "10.0 GB/s", "-"}) {
    INFO(piece);
    CHECK_THAT(text, Catch::Contains(piece));
  }
}

TEST_CASE("A bandwidth plot names curves and measured points, and is the same twice") {
  const std::string svg = to_svg(to_figure(figure()));
  for (const char* piece : {"a machine", "auto, predicted", "ring, predicted", "measured", "bus bandwidth (GB/s)"}) {
    INFO(piece);
    CHECK_THAT(svg, Catch::Contains(piece));
  }
  CHECK(svg == to_svg(to_figure(figure())));
}

TEST_CASE("No curve has the colour of the measured points, and none of the first six another's") {
  BandwidthFigure six = figure();
  const BandwidthCurve one = six.panels[0].curves[0];
  six.panels[0].curves.assign(6, one);
  std::set<std::string_view> colours;
  const Figure drawn = to_figure(six);
  const std::vector<Series>& series = drawn.panels.front().series;
  for (const Series& of : series) colours.insert(of.colour);
  CHECK(series.size() == 7);
  CHECK(colours.size() == 7);
}

TEST_CASE("A panel without any point cannot be drawn") {
  BandwidthFigure empty = figure();
  empty.panels[0].curves = {{"auto", {std::nullopt, std::nullopt}}};
  empty.panels[0].measured.clear();
  CHECK_THROWS_AS(to_svg(to_figure(empty)), UsageError);
}

}  // namespace foretrain::test
