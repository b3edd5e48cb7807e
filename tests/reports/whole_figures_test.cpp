// Small figures, each checked as a whole: every number of these pictures can be worked out in the head.

#include "model/base/error.hpp"
#include "reports/figure/plot.hpp"
#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {

namespace {

CurveChart over_buckets(const char* quantity, std::vector<Curve> curves) {
  CurveChart chart{.axis = "gradient bucket", .places = {1.0, 8.0, 64.0}, .labels = {"1 MB", "8 MB", "64 MB"}};
  chart.scale = {quantity, 1.0, value_text};
  chart.curves = std::move(curves);
  return chart;
}

SweepChart buckets() {
  SweepChart sweep{"plan.sync.bucket", over_buckets("", {{"step", {0.3, 0.2, 0.25}}, {"compute", {0.1, NAN, 0.1}}})};
  sweep.times.title = "ResNet-50";
  sweep.times.scale = time_scale(0.3);
  return sweep;
}

}  // namespace

TEST_CASE("A sweep marks its shortest step, unless that is at an end, and draws parts thin", "[golden]") {
  SweepChart sweep = buckets();
  check_whole("sweep-marks-shortest-step-unless.txt", figure_words(to_figure(sweep)));
  sweep.times.curves[0].values = {0.2, 0.3, 0.25};
  sweep.times.curves.push_back({"other", {0.2, 0.3, 0.1}});
  sweep.times.curves[1].values[1] = 0.01;
  sweep.steps = 2;
  check_whole("sweep-marks-shortest-step-unless-2.txt", figure_words(to_figure(sweep)));
  check_whole("sweep-marks-shortest-step-unless-3.txt", to_text(sweep));
}

TEST_CASE("Quantities of a sweep are lines over values and bars over names", "[golden]") {
  SweepChart sweep = buckets();
  sweep.quantities = {over_buckets(
      "memory (GB)", {{"a", {1.0, 2.5, NAN}, {{0.5, 1.5}, {2.0, 3.0}, {}}}, {"b", {20.0, 1234.5, 0.0125}}})};
  CHECK(figure_words(to_figure(sweep)) == R"(
figure <>, columns 2, legend above
panel <ResNet-50>, <>: 420 x 270
  x <gradient bucket (MB)> log: 1=1 8=8 64=64
  y <memory (GB)> log grid
  series <a> ends in <2.50> line 2.5 dot own 0.6 (1, 1)[0.5..1.5] (8, 2.5)[2..3] (64, nan)[0..0]
  series <b> ends in <0.0125> line 2.5 dot own 0.6 (1, 20) (8, 1234.5) (64, 0.0125)
)");
  sweep.quantities.push_back(over_buckets("time (ms)", {{"step", {300.0, 200.0, 250.0}}}));
  for (CurveChart& chart : sweep.quantities) chart.places.clear();
  check_whole("quantities-sweep-lines-over-values.txt", figure_words(to_figure(sweep)));
  check_whole("quantities-sweep-lines-over-values-2.txt", to_text(sweep));
}

TEST_CASE("Throughput stands above its share of the ideal, which is the best way's on the fewest GPUs", "[golden]") {
  ScalingChart scaling{.samples = "images", .batches = {128.0, 256.0, 512.0}};
  scaling.steps = {.title = "ResNet-50",
                   .subtitle = "64 images per GPU",
                   .axis = "GPUs",
                   .places = {2, 4, 8},
                   .labels = {"2", "4", "8"},
                   .scale = time_scale(0.4),
                   .curves = {{"ring", {NAN, 0.25, 0.32}, {{}, {0.2, 0.4}, {0.16, 0.64}}}, {"naive", {0.2, 0.4, NAN}}}};
  check_whole("throughput-stands-above-share-ideal.txt", figure_words(to_figure(std::vector{scaling})));
  CHECK(to_text(std::vector{scaling}) == R"(ResNet-50: time of one step, 64 images per GPU

  GPUs    ring   naive  slowest / fastest
  ───────────────────────────────────────
     2       -  200 ms               1.00
     4  250 ms  400 ms               1.60
     8  320 ms       -               1.00
)");
}

TEST_CASE("Cases of two points and more are curves in panels of one scale of times", "[golden]") {
  CaseFigure cases{"workers"};
  const auto add = [&](const char* panel, const char* curve, double x, double predicted, double measured, Span range) {
    add_point(cases, panel, curve, {x, std::to_string(int(x)), Seconds(predicted), Seconds(measured), range});
  };
  add("lenet", "all_reduce", 4, 0.03, 0.02, {0.01, 0.04});
  add("lenet", "all_reduce", 2, 0.01, 0.025, {0.005, 0.015});
  add("mlp", "server", 1, 0.04, 0.05, {});
  add("mlp", "server", 2, 0.06, 0.05, {});
  add("mlp", "alone", 2, 9.0, 9.0, {});
  add("only", "alone", 2, 9.0, 9.0, {});
  check_whole("cases-two-points-more-curves.txt", figure_words(to_figure(cases)));
  add("mlp", "server", 3, 0.01, 2.0, {});
  const Figure decades = to_figure(cases);
  CHECK(axis_words(decades.panels[1].y) == R"(<time of one step> log in s grid)");
  CHECK(series_words(decades.panels[1].series[0]) == R"(<server> #D55E00 line 2 (1, 0.04) (2, 0.06) (3, 0.01))");
}

TEST_CASE("Bars are stacked parts of a step, their shares written in them", "[golden]") {
  const Breakdown whole{Seconds(0.05), Seconds(0.02), Seconds(0), Seconds(0.01), Seconds(0), Seconds(0.02)};
  const Breakdown brief{Seconds(0.008), Seconds(0.001), Seconds(0), Seconds(0), Seconds(0.001), Seconds(0)};
  const std::vector<BreakdownBar> times = {{"GPT-2, eight cards", whole, "10 samples/s"}, {"GPT-2, one card", brief}};
  check_whole("bars-stacked-parts-step-their.txt", figure_words(to_figure(times)));
  // A bar twelve times as long as the shortest can still be compared; one of 100 ms beside 7 ms cannot.
  Breakdown one, twelve, briefer;
  one.compute = Seconds(1.0);
  twelve.compute = Seconds(12.0);
  briefer.compute = Seconds(0.004);
  briefer.exposed_communication = Seconds(0.003);
  CHECK(to_figure(std::vector<BreakdownBar>{{"a", one}, {"b", twelve}}).panels[0].x.name == "time of one step (s)");
  check_whole("bars-stacked-parts-step-their-2.txt",
              figure_words(to_figure(std::vector<BreakdownBar>{{"GPT-2, long", whole}, {"GPT-3", briefer}})));
  CHECK(to_figure(std::vector<BreakdownBar>{{"a, b", one}}).panels[0].title.empty());
  CHECK(to_figure(std::vector<BreakdownBar>{}).panels.empty());
}

TEST_CASE("A timeline has a row for each resource, host threads first, and bars where something ran", "[golden]") {
  TimelineFigure timeline;
  timeline.title = "a step";
  timeline.entries = {{"gpu0", "forward 1", Seconds(0.0), Seconds(0.3), 0, "compute"},
                      {"gpu0", "backward 1", Seconds(0.4), Seconds(0.4), 0, "compute"},
                      {"link", "tiny", Seconds(0.2), Seconds(0.0001), 0, "communication"},
                      {"link", "tiny", Seconds(0.2002), Seconds(0.0001), 0, "communication"},
                      {"link", "all-reduce", Seconds(0.5), Seconds(0.5), 0, "communication"},
                      {"cpu0", "launch", Seconds(0.0), Seconds(0.1), 0, "host"},
                      {"cpu0", "unheard", Seconds(0.6), Seconds(0.1), 0, "of"}};
  check_whole("timeline-row-each-resource-host.txt", figure_words(to_figure(timeline)));
  timeline.from = Seconds(0.3);
  timeline.until = Seconds(0.6);
  check_whole("timeline-row-each-resource-host-2.txt", figure_words(to_figure(timeline)));
}

TEST_CASE("Bars too narrow to be seen apart are drawn as one") {
  // 10,000 kernels of 1 us without a gap, on a plot of less than 1,000 pixels: the picture must not grow with them.
  TimelineFigure timeline{.title = "many kernels"};
  for (int i = 0; i < 10'000; ++i) {
    timeline.entries.push_back({"gpu0", "kernel", Seconds(1e-6 * i), Seconds(1e-6), i, "compute"});
  }
  CHECK(to_figure(timeline).panels[0].series[0].boxes.size() == 1);
  timeline.from = Seconds(1.0);
  CHECK_THROWS_AS(to_figure(timeline), UsageError);
}

}  // namespace foretrain::test
