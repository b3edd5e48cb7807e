// Small pictures of bars, curves and labelled points, byte by byte. gnuplot draws differently from version to version:
// where another one is installed than the golden files name, nothing is compared.
#include <cmath>

#include "reports/figure/plot_breakdown.hpp"
#include "reports/figure/plot_scaling.hpp"
#include "reports/figure/plot_sweep.hpp"
#include "reports/studies/roofline.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

namespace {

/// "Produced by GNUPLOT 5.4 patchlevel 4"
std::string drawn_by(const std::string& svg) {
  const std::string begin = "<desc>", end = "</desc>";
  const std::size_t from = svg.find(begin);
  return from == std::string::npos ? "" : svg.substr(from, svg.find(end, from) - from);
}

void check_picture(const std::string& kind, const Figure& figure) {
  const std::string svg = to_svg(figure), expected = golden("svg/" + kind + ".svg", svg);
  INFO(kind);
  REQUIRE_FALSE(expected.empty());
  if (drawn_by(svg) != drawn_by(expected)) {
    WARN("the golden pictures are of another gnuplot: " << drawn_by(expected));
    return;
  }
  CHECK((svg == expected));
}

RooflineFigure one_roof() {
  RooflinePanel panel;
  panel.gpu = "a100-sxm-80gb";
  panel.bandwidth = BytesPerSecond(2e12);
  panel.roofs = {{"bf16 (tensor cores)", FlopsPerSecond(312e12)}, {"fp32", FlopsPerSecond(19.5e12)}};
  panel.peaks = {{Precision::bf16, FlopsPerSecond(312e12)}, {Precision::fp32, FlopsPerSecond(19.5e12)}};
  panel.points = {{"product", Precision::bf16, Flops(1.4e11), Bytes(1e8), Seconds(6e-4), "compute"},
                  {"sum", Precision::fp32, Flops(1e7), Bytes(1.2e8), Seconds(8e-5), "memory"}};
  return {{panel}};
}

CurveChart chart(const char* axis, std::vector<double> places, std::vector<std::string> labels) {
  return {.title = "ResNet-50",
          .axis = axis,
          .places = std::move(places),
          .labels = std::move(labels),
          .scale = time_scale(0.4)};
}

}  // namespace

TEST_CASE("Small pictures are those of their golden files", "[golden]") {
  check_picture("breakdown", to_figure(std::vector<BreakdownBar>{
                                 {"GPT-3 & others", large_step().train()->breakdown, "34.9 samples/s"},
                                 {"one card", step_that_does_not_fit().train()->breakdown}}));
  ScalingChart scaling{chart("GPUs", {1, 2, 4}, {"1", "2", "4"}), "images", {64.0, 128.0, 256.0}};
  scaling.steps.subtitle = "64 images per GPU";
  scaling.steps.curves = {{"ring", {0.2, 0.21, 0.22}}, {"naive", {0.2, NAN, 0.4}}};
  check_picture("scaling", to_figure(std::vector{scaling}));
  SweepChart sweep{"plan.sync.bucket", chart("gradient bucket", {1.0, 25.0, 100.0}, {"1 MB", "25 MB", "100 MB"})};
  sweep.times.curves = {{"step", {0.3, 0.2, 0.25}}, {"compute", {0.1, NAN, 0.1}}};
  check_picture("sweep", to_figure(sweep));
  check_picture("roofline", to_figure(one_roof()));
}

}  // namespace foretrain::test
