// What every picture has in common: texts that can be read, bands, formats.
#include <cmath>

#include "reports/figure/figure.hpp"
#include "reports/figure/plot_breakdown.hpp"
#include "reports/figure/plot_cases.hpp"
#include "reports/figure/plot_scaling.hpp"
#include "reports/figure/plot_sweep.hpp"
#include "tests/catch.hpp"
#include "tests/reports/picture_texts.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

namespace {

ScalingChart model(const char* title, const char* subtitle, const char* samples, double per_gpu) {
  ScalingChart chart{.samples = samples, .batches = {per_gpu, 8 * per_gpu, 64 * per_gpu}};
  chart.steps = {.title = title,
                 .subtitle = subtitle,
                 .axis = "GPUs",
                 .places = {1, 8, 64},
                 .labels = {"1", "8", "64"},
                 .scale = time_scale(0.4),
                 .curves = {{"ring", {0.2, 0.21, 0.22}}, {"parameter server", {0.2, 0.3, 0.4}}}};
  return chart;
}

std::vector<ScalingChart> two_models() {
  return {model("ResNet-50 on machines with eight cards", "64 images per GPU, fp32", "images", 64.0),
          model("GPT-2 XL (1.5 B)", "8 sequences per GPU, bf16", "sequences", 8.0)};
}

Figure bars() {
  return to_figure(std::vector<BreakdownBar>{
      {"GPT-3, data parallel with the largest buckets", large_step().train()->breakdown, "34.9 samples/s"},
      {"GPT-3, one card", step_that_does_not_fit().train()->breakdown}});
}

Figure cases() {
  CaseFigure cases{"network speed (Mbit/s)"};
  for (const char* panel : {"lenet", "gpt-small", "mlp-wide"}) {
    for (const char* curve : {"ring, 2 workers", "server on every worker, 4 workers"}) {
      for (const double speed : {100.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0}) {
        add_point(cases, panel, curve, {speed, std::to_string(int(speed)), Seconds(3.0 / speed), Seconds(3.1 / speed)});
      }
    }
  }
  return to_figure(cases);
}

SweepChart names() {
  CurveChart times{.title = "ResNet-50",
                   .labels = {"ring", "8 dedicated servers, added"},
                   .scale = time_scale(0.3),
                   .curves = {{"step", {0.3, 0.2}, {{0.25, 0.35}, {0.15, 0.25}}}}};
  CurveChart memory = times;
  memory.scale = {"memory of a GPU (GB)", 1.0, value_text};
  memory.curves = {{"step", {7720.0, 12.5}}};
  return {"plan.sync", times, 1, {times, memory}};
}

SweepChart over_data(std::vector<Span> ranges) {
  return {"plan.data",
          {.title = "ResNet-50",
           .places = {1.0, 8.0},
           .labels = {"1", "8"},
           .scale = time_scale(0.3),
           .curves = {{"step", {0.2, 0.3}, std::move(ranges)}}}};
}

}  // namespace

TEST_CASE("No text of a picture is cut off, covers another or is too small") {
  for (const Figure& figure : {to_figure(two_models()), bars(), cases(), to_figure(names())}) {
    CHECK(illegible(to_svg(figure)) == "");
  }
}

TEST_CASE("A band is an area of the line's colour") {
  CHECK_THAT(to_svg(to_figure(over_data({{0.1, 0.3}, {0.2, 0.4}}))), Catch::Contains("fill-opacity"));
}

TEST_CASE("Files of all formats are as large as the picture, in dots, inches or pixels") {
  std::string scripts = "\n";
  for (const PictureFormat format : {PictureFormat::svg, PictureFormat::png, PictureFormat::pdf}) {
    const std::string script = terminal_script(format, 360, 240);
    scripts += script.substr(0, script.find(" noenhanced")) + "\n";
  }
  CHECK(scripts == R"(
set terminal svg size 360,240 dynamic
set terminal pngcairo size 720,480 fontscale 1.5 linewidth 2 pointscale 2.6 dashlength 2
set terminal pdfcairo size 3.7500in,2.5000in fontscale 0.5625 linewidth 1.7 pointscale 1
)");
}

}  // namespace foretrain::test
