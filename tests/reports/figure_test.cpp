// Shared by all pictures: print sizes, bands, names of series, and tables of what is drawn.

#include "reports/figure/figure.hpp"
#include "model/base/error.hpp"
#include "reports/figure/plot.hpp"
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

/// The same as wide as this in print.
Figure printed(Figure figure, double width_cm) {
  figure.width_cm = width_cm;
  return figure;
}

}  // namespace

TEST_CASE("No text of a picture is cut off, covers another or is too small, on screens and in print") {
  for (const Figure& figure : {to_figure(two_models()), bars(), cases(), to_figure(names())}) {
    for (const double width : {0.0, 8.5, 17.5}) {
      INFO(width);
      CHECK(illegible(to_svg(printed(figure, width))) == "");
    }
  }
}

TEST_CASE("A picture for print is as wide as is asked for, its letters of six points and more") {
  // 8.5 cm are 8.5 / 2.54 · 120 = 402 pixels of 0.6 points; ten of them are six points.
  const std::string svg = to_svg(printed(to_figure(two_models()), 8.5));
  CHECK_THAT(svg, Catch::Contains(R"(width="8.500cm")"));
  CHECK(texts_of(svg).width == 402.0);
  CHECK_THROWS_AS(to_svg(printed(bars(), 2.0)), UsageError);
}

TEST_CASE("Print has names in a legend where lines would have no room beside them") {
  const std::string narrow = to_svg(printed(to_figure(two_models()), 8.5));
  CHECK_THAT(narrow, Catch::Contains(">ring<") && !Catch::Contains("ring  "));
  CHECK_THAT(to_svg(printed(to_figure(over_data({})), 14.0)), Catch::Contains("step  300 ms"));
}

TEST_CASE("Series are named anew in their order, the rest as before") {
  Figure figure = to_figure(two_models());
  name_series(figure, {"all-reduce"});
  for (const Panel& panel : figure.panels) {
    CHECK(panel.series[0].name == "all-reduce");
    CHECK(panel.series[1].name == "parameter server");
  }
  CHECK_THROWS_AS(name_series(figure, {"a", "b", "c", "d"}), UsageError);
}

TEST_CASE("What is drawn is a table of plain numbers with their units in its header") {
  // 64 images in 0.2 s are 320 a second.
  const std::string table = to_csv(to_figure(two_models()));
  CHECK_THAT(table, Catch::StartsWith("panel,series,GPUs,images/s"));
  CHECK_THAT(table, Catch::Contains("ResNet-50 on machines with eight cards,ring,1,320"));
  const std::string parts = to_csv(bars());
  CHECK_THAT(parts, Catch::StartsWith("panel,series,bar,"));
  CHECK_THAT(parts, Catch::Contains("GPT-3,compute,one card,0,"));
  CHECK_THAT(to_csv(cases()), Catch::Contains("lenet,\"ring, 2 workers, measured\",100,0.031"));
}

TEST_CASE("A band is a column for each of its sides, and an area of the line's colour") {
  const Figure figure = to_figure(over_data({{0.1, 0.3}, {0.2, 0.4}}));
  CHECK_THAT(to_csv(figure), Catch::Contains("time (ms), low\",\"time (ms), high\"") &&
                                 Catch::Contains(",1,200,100,300") && Catch::Contains(",8,300,200,400"));
  CHECK_THAT(to_svg(figure), Catch::Contains("fill-opacity"));
}

TEST_CASE("Files of all formats are as large as the picture, in dots, inches or pixels") {
  // Screens have two dots a pixel, print five; its letters and lines are in inches as those of screens are in pixels.
  std::string scripts = "\n";
  for (const PictureFormat format : {PictureFormat::svg, PictureFormat::png, PictureFormat::pdf}) {
    for (const double pixels_per_inch : {screen_pixels_per_inch, print_pixels_per_inch}) {
      const std::string script = terminal_script(format, 360, 240, pixels_per_inch);
      scripts += script.substr(0, script.find(" noenhanced")) + "\n";
    }
  }
  CHECK(scripts == R"(
set terminal svg size 360,240 dynamic
set terminal svg size 360,240 dynamic
set terminal pngcairo size 720,480 fontscale 1.5 linewidth 2 pointscale 2.6 dashlength 2
set terminal pngcairo size 1800,1200 fontscale 3.75 linewidth 5 pointscale 6.5 dashlength 1
set terminal pdfcairo size 3.7500in,2.5000in fontscale 0.5625 linewidth 1.7 pointscale 1
set terminal pdfcairo size 3.0000in,2.0000in fontscale 0.45 linewidth 1.36 pointscale 0.8
)");
}

TEST_CASE("Bars are rows with where they begin and how long they are, or the middle and the height of each") {
  Panel rows{.title = "title", .rows = true};
  rows.x.name = "time (ms)";
  rows.y.tics = {{2.0, "upper"}, {1.0, "lower"}};
  rows.series = {{.name = "one", .ranges = {{1.0, 4.0}}, .boxes = {{1.0, 3.0, 1.6, 2.4}, {2.0, 7.0, 0.6, 1.4}}},
                 {.boxes = {{0.0, 1.0, 0.0, 1.0}}}};
  Panel columns{};
  columns.series = {{.name = "two", .boxes = {{1.0, 3.0, 2.0, 7.0}}},
                    {.table_name = "dots", .points = {{1.0, NAN}, {2.0, 0.1 + 0.2}}, .measured = true}};
  columns.y.unit = "B";
  CHECK("\n" + to_csv({.panels = {rows, columns}}) == R"(
panel,series,bar,"time (ms), begin","time (ms), length","time (ms), low","time (ms), high",x,y (B)
title,one,upper,1,2,1,4,,
title,one,lower,2,5,,,,
,two,,,,,,2,5
,"dots, measured",,,,,,2,0.3
)");
}

}  // namespace foretrain::test
