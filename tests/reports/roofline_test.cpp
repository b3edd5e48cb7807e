#include "reports/studies/roofline.hpp"

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {

namespace {

Scenario scenario(const std::string& workload, const std::string& node = "dgx-a100-80gb") {
  return load_scenario_text("name: it\ncluster: { node: " + node + ", gpus_per_node: 1 }\nworkload: " + workload + "\n",
                            "roofline.yaml");
}

const std::string product = "{ operator: { kind: matmul, m: 4096, n: 4096, k: 4096, precision: bf16 } }";

}  // namespace

TEST_CASE("A point is an operator's work over its traffic and over its time") {
  // 2 · 4096³ FLOP over 3 · 4096² · 2 B: 4096 / 3 FLOP per byte.
  const RooflineFigure figure = roofline_figure({scenario(product)});
  REQUIRE(figure.panels.size() == 1);
  const RooflinePanel& panel = figure.panels.front();
  REQUIRE(panel.points.size() == 1);
  const RooflinePoint& point = panel.points.front();
  CHECK(point.name == "it");
  CHECK(point.intensity().value() == Approx(4096.0 / 3.0));
  CHECK(point.rate() == point.flops / point.time);
  // Under bf16's roof, 312 TFLOP/s, which begins at 312 / 2.039 = 153 FLOP per byte.
  CHECK(panel.roof_over(point).value() == Approx(312e12));
  CHECK(point.rate() < panel.roof_over(point));
}

TEST_CASE("Left of the ridge the roof is the memory's slope") {
  // 1 FLOP for each element of bf16 read and written: 0.25 FLOP per byte, at 2039 GB/s 510 GFLOP/s.
  const RooflineFigure figure =
      roofline_figure({scenario("{ operator: { kind: elementwise, elements: 100000000, precision: bf16 } }")});
  const RooflinePanel& panel = figure.panels.front();
  CHECK(panel.roof_over(panel.points.front()).value() == Approx(0.25 * panel.bandwidth.value()));
}

TEST_CASE("A step's operators are added up by name, longest first") {
  const RooflineFigure figure = roofline_figure({scenario(
      "{ train: { model: { family: gpt, layers: 3, hidden: 1024, heads: 16, vocabulary: 50304, sequence: 512 }, "
      "micro_batch: 4, precision: bf16 } }")});
  const auto& points = figure.panels.front().points;
  for (std::size_t i = 1; i < points.size(); ++i) CHECK(points[i - 1].time >= points[i].time);
  // Three layers' qkv projections: 3 · 2 · 2048 tokens · 1024 · 3072.
  const auto qkv = std::ranges::find_if(points, [](const auto& p) { return p.name == "qkv projection"; });
  REQUIRE(qkv != points.end());
  CHECK(qkv->flops.value() == Approx(3.0 * 2 * 2048 * 1024 * 3072));
}

TEST_CASE("Formats of one rate share a roof, and each GPU has a panel of its own") {
  const RooflineFigure figure = roofline_figure({scenario(product), scenario(product, "dgx-h100"), scenario(product)});
  REQUIRE(figure.panels.size() == 2);
  CHECK(figure.panels[0].points.size() == 2);
  bool shared = false;
  for (const Roof& roof : figure.panels[0].roofs) shared = shared || roof.name == "fp16, bf16";
  CHECK(shared);
  for (std::size_t i = 1; i < figure.panels[0].roofs.size(); ++i) {
    CHECK(figure.panels[0].roofs[i - 1].rate > figure.panels[0].roofs[i].rate);
  }
}

TEST_CASE("Without arithmetic there is nothing to draw") {
  const RooflineFigure copies = roofline_figure({scenario("{ operator: { kind: copy, size: 1 GB } }")});
  CHECK_THROWS_AS(to_svg(to_figure(copies)), UsageError);
  CHECK_THAT(to_text(copies), Catch::Contains(" - "));
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
