// Small figures, each checked as a whole: every number of these pictures can be worked out in the head.
#include "reports/figure/plot_breakdown.hpp"
#include "reports/figure/plot_cases.hpp"
#include "reports/figure/plot_scaling.hpp"
#include "reports/figure/plot_sweep.hpp"
#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"

namespace foretrain::test {

namespace {

SweepFigure buckets() {
  SweepFigure sweep = {"ResNet-50", "plan.sync.bucket", {"1 MB", "8 MB", "64 MB"}, {1.0, 8.0, 64.0}, {}, 1};
  sweep.curves = {{"step", {Seconds(0.3), Seconds(0.2), Seconds(0.25)}},
                  {"compute", {Seconds(0.1), std::nullopt, Seconds(0.1)}}};
  return sweep;
}

}  // namespace

TEST_CASE("A sweep marks its shortest step, unless that is at an end, and draws parts thin") {
  SweepFigure sweep = buckets();
  CHECK(figure_words(to_figure(sweep)) == R"(
figure <>, columns 100, legend above
panel <ResNet-50>, <>: 520 x 300
  x <gradient bucket (MB)> log: 1=1 8=8 64=64
  y <time (ms)> grid
  series <step> ends in <250 ms> line 2.5 dot own 0.6 (1, 300) (8, 200) (64, 250)
  series <compute> ends in <100 ms> line 1.2 dashed dot own 0.6 (1, 100) (8, nan) (64, 100)
  series <> #333333 dot ring 1.4 (8, 200)
  label <best: 8 MB> at (8, 200) middle +0,+16 #0072B2
)");
  sweep.curves[0].times = {Seconds(0.2), Seconds(0.3), Seconds(0.25)};
  sweep.curves.push_back({"other", {Seconds(0.2), Seconds(0.3), Seconds(0.1)}});
  sweep.curves[1].times[1] = Seconds(0.01);
  sweep.steps = 2;
  CHECK(figure_words(to_figure(sweep)) == R"(
figure <>, columns 100, legend above
panel <ResNet-50>, <>: 520 x 300
  x <gradient bucket (MB)> log: 1=1 8=8 64=64
  y <time (ms)> log 0.1..420 grid
  series <step> ends in <250 ms> line 2.5 dot own 0.6 (1, 200) (8, 300) (64, 250)
  series <compute> ends in <100 ms> line 2.5 dot own 0.6 (1, 100) (8, 10) (64, 100)
  series <other> ends in <100 ms> line 1.2 dashed dot own 0.6 (1, 200) (8, 300) (64, 100)
  series <> #333333 dot ring 1.4 (8, 10)
)");
  CHECK(to_text(sweep) == R"(ResNet-50

  plan.sync.bucket    step  compute   other
  ─────────────────────────────────────────
              1 MB  200 ms   100 ms  200 ms
              8 MB  300 ms  10.0 ms  300 ms
             64 MB  250 ms   100 ms  100 ms

  step is shortest at 1 MB: 200 ms
  compute is shortest at 8 MB: 10.0 ms
)");
}

TEST_CASE("Quantities of a sweep are lines over values and bars over names") {
  SweepFigure sweep = buckets();
  sweep.quantities = {
      {"memory (GB)", {{"a", {1.0, 2.5, std::nullopt}, {{0.5, 1.5}, {2.0, 3.0}, {}}}, {"b", {20.0, 1234.5, 0.0125}}}}};
  CHECK(figure_words(to_figure(sweep)) == R"(
figure <>, columns 2, legend above
panel <ResNet-50>, <>: 420 x 270
  x <gradient bucket (MB)> log: 1=1 8=8 64=64
  y <memory (GB)> log grid
  series <a> ends in <2.50> line 2.5 dot own 0.6 (1, 1)[0.5..1.5] (8, 2.5)[2..3] (64, nan)[0..0]
  series <b> ends in <0.0125> line 2.5 dot own 0.6 (1, 20) (8, 1234.5) (64, 0.0125)
)");
  sweep.values.clear();
  sweep.quantities.push_back({"time (ms)", {{"step", {300.0, 200.0, 250.0}}}});
  CHECK(figure_words(to_figure(sweep)) == R"(
figure <ResNet-50>, columns 2, legend above
panel <>, <>: 420 x 150 rows
  x <memory (GB)> 0..1234.5 grid
  y <> 0.5..3.5: 3=1 MB 2=8 MB 1=64 MB
  series <a> #004B7A [0..1 x 3..3.376][0.5..1.5] [0..2.5 x 2..2.376][2..3]
  series <b> #D55E00 [0..20 x 2.6..2.976] [0..1234.5 x 1.6..1.976] [0..0.0125 x 0.6..0.976]
  series <> #222222 line 1.5 (0.5, 3.188) (1.5, 3.188) (0, nan) (2, 2.188) (3, 2.188) (0, nan)
  label <1.00> at (1.5, 3.188) left +6,+0
  label <2.50> at (3, 2.188) left +6,+0
  label <20.0> at (20, 2.788) left +6,+0
  label <1,234> at (1234.5, 1.788) left +6,+0
  label <0.0125> at (0.0125, 0.788) left +6,+0
panel <>, <>: 420 x 96 rows
  x <time (ms)> 0..300 grid
  y <> 0.5..3.5: 3=1 MB 2=8 MB 1=64 MB
  series <> told <step> #004B7A [0..300 x 2.6..3.352] [0..200 x 1.6..2.352] [0..250 x 0.6..1.352]
  label <300> at (300, 2.976) left +6,+0
  label <200> at (200, 1.976) left +6,+0
  label <250> at (250, 0.976) left +6,+0
)");
  CHECK(to_text(sweep) == R"(ResNet-50

  plan.sync.bucket    step  compute
  ─────────────────────────────────
              1 MB  300 ms   100 ms
              8 MB  200 ms        -
             64 MB  250 ms   100 ms

  step is shortest at 8 MB: 200 ms

memory (GB)

  plan.sync.bucket     a       b
  ──────────────────────────────
              1 MB  1.00    20.0
              8 MB  2.50   1,234
             64 MB     -  0.0125
)");
}

TEST_CASE("Throughput stands above its share of the ideal, which is the best way's on the fewest GPUs") {
  ScalingFigure scaling = {{2, 4, 8}, {{"ResNet-50", "64 images per GPU", {}, "images", {128.0, 256.0, 512.0}}}};
  scaling.panels[0].curves = {{"ring",
                               {std::nullopt, Seconds(0.25), Seconds(0.32)},
                               {{}, {Seconds(0.2), Seconds(0.4)}, {Seconds(0.16), Seconds(0.64)}}},
                              {"naive", {Seconds(0.2), Seconds(0.4), std::nullopt}}};
  CHECK(figure_words(to_figure(scaling)) == R"(
figure <>, columns 1, legend above
panel <ResNet-50>, <64 images per GPU>: 380 x 270
  x <GPUs> log: 2=2 4=4 8=8
  y <images a second> log grid
  series <ring> ends in <1.60 K> line 2.5 dot own 0.6 (2, nan)[0..0] (4, 1024)[640..1280] (8, 1600)[800..3200]
  series <naive> ends in <640> line 2.5 dot own 0.6 (2, 640) (4, 640) (8, nan)
  series <ideal> ends in <> #6c6c6c line 1.5 dashed (2, 640) (4, 1280) (8, 2560)
panel <>, <>: 380 x 190
  x <GPUs> log: 2=2 4=4 8=8
  y <share of the ideal (%)> 0..108 grid
  series <ring> ends in <62 %> line 2.5 dot own 0.6 (2, nan)[0..0] (4, 80)[50..100] (8, 62.5)[31.25..125]
  series <naive> ends in <50 %> line 2.5 dot own 0.6 (2, 100) (4, 50) (8, nan)
  series <ideal> ends in <> #6c6c6c line 1.5 dashed (2, 100) (8, 100)
)");
  CHECK(to_text(scaling) == R"(ResNet-50: time of one step, 64 images per GPU

  GPUs    ring   naive  slowest / fastest
  ───────────────────────────────────────
     2       -  200 ms               1.00
     4  250 ms  400 ms               1.60
     8  320 ms       -               1.00
)");
}

TEST_CASE("Cases of two points and more are curves in panels of one scale of times") {
  CaseFigure cases{"workers", {}};
  const auto add = [&](const char* panel, const char* curve, double x, double predicted, double measured,
                       TimeRange range) {
    add_point(cases, panel, curve, {x, std::to_string(int(x)), Seconds(predicted), Seconds(measured), range});
  };
  add("lenet", "all_reduce", 4, 0.03, 0.02, {Seconds(0.01), Seconds(0.04)});
  add("lenet", "all_reduce", 2, 0.01, 0.025, {Seconds(0.005), Seconds(0.015)});
  add("mlp", "server", 1, 0.04, 0.05, {});
  add("mlp", "server", 2, 0.06, 0.05, {});
  add("mlp", "alone", 2, 9.0, 9.0, {});
  add("only", "alone", 2, 9.0, 9.0, {});
  CHECK(figure_words(to_figure(cases)) == R"(
figure <>, columns 2, legend shared
panel <lenet>, <lines: predicted; points: measured>: 310 x 260
  x <workers>: 2=2 4=4
  y <time of one step (ms)> grid
  series <all reduce> #0072B2 line 2 (2, 10)[5..15] (4, 30)[10..40]
  series <> told <all reduce> #0072B2 dot own 0.8 measured (2, 25) (4, 20)
panel <mlp>, <lines: predicted; points: measured>: 310 x 260
  x <workers>: 1=1 2=2
  y <time of one step (ms)> grid
  series <server> #D55E00 line 2 (1, 40) (2, 60)
  series <> told <server> #D55E00 dot own 0.8 measured (1, 50) (2, 50)
)");
  add("mlp", "server", 3, 0.01, 2.0, {});
  const Figure decades = to_figure(cases);
  CHECK(axis_words(decades.panels[1].y) == R"(<time of one step> log in s grid)");
  CHECK(series_words(decades.panels[1].series[0]) == R"(<server> #D55E00 line 2 (1, 0.04) (2, 0.06) (3, 0.01))");
}

TEST_CASE("Bars are stacked parts of a step, their shares written in them") {
  const Breakdown whole{Seconds(0.05), Seconds(0.02), Seconds(0), Seconds(0.01), Seconds(0), Seconds(0.02)};
  const Breakdown brief{Seconds(0.008), Seconds(0.001), Seconds(0), Seconds(0), Seconds(0.001), Seconds(0)};
  const std::vector<BreakdownBar> times = {{"GPT-2, eight cards", whole, "10 samples/s"}, {"GPT-2, one card", brief}};
  CHECK(figure_words(to_figure(times)) == R"(
figure <>, columns 100, legend above
panel <GPT-2>, <>: 640 x 92 rows edge #ffffff
  x <time of one step (ms)> 0..100 grid
  y <> 0.4..2.6: 2=eight cards 1=one card
  series <compute> #004B7A [0..50 x 1.66..2.34] [0..8 x 0.66..1.34]
  series <exposed communication> #D55E00 [50..70 x 1.66..2.34] [8..9 x 0.66..1.34]
  series <waiting for data> #F0E442 [70..80 x 1.66..2.34]
  series <host overhead> #56B4E9 [9..10 x 0.66..1.34]
  series <optimizer> #00694D [80..100 x 1.66..2.34]
  label <50 %> at (25, 2) middle #ffffff room 50
  label <20 %> at (60, 2) middle #ffffff room 20
  label <10 %> at (75, 2) middle #000000 room 10
  label <20 %> at (90, 2) middle #ffffff room 20
  label <100 ms · 10 samples/s> at (100, 2) left +8,+0 font 13
  label <80 %> at (4, 1) middle #ffffff room 8
  label <10 %> at (8.5, 1) middle #ffffff room 1
  label <10 %> at (9.5, 1) middle #000000 room 1
  label <10.0 ms> at (10, 1) left +8,+0 font 13
)");
  // A bar twelve times as long as the shortest can still be compared; one of 100 ms beside 7 ms cannot.
  Breakdown one, twelve, briefer;
  one.compute = Seconds(1.0);
  twelve.compute = Seconds(12.0);
  briefer.compute = Seconds(0.004);
  briefer.exposed_communication = Seconds(0.003);
  CHECK(to_figure(std::vector<BreakdownBar>{{"a", one}, {"b", twelve}}).panels[0].x.name == "time of one step (s)");
  CHECK(figure_words(to_figure(std::vector<BreakdownBar>{{"GPT-2, long", whole}, {"GPT-3", briefer}})) == R"(
figure <>, columns 100, legend above
panel <>, <>: 640 x 92 rows edge #ffffff
  x <share of the step (%)> 0..100 grid
  y <> 0.4..2.6: 2=GPT-2, long 1=GPT-3
  series <compute> #004B7A [0..50 x 1.66..2.34] [0..57.1429 x 0.66..1.34]
  series <exposed communication> #D55E00 [50..70 x 1.66..2.34] [57.1429..100 x 0.66..1.34]
  series <waiting for data> #F0E442 [70..80 x 1.66..2.34]
  series <optimizer> #00694D [80..100 x 1.66..2.34]
  label <50 %> at (25, 2) middle #ffffff room 50
  label <20 %> at (60, 2) middle #ffffff room 20
  label <10 %> at (75, 2) middle #000000 room 10
  label <20 %> at (90, 2) middle #ffffff room 20
  label <100 ms> at (100, 2) left +8,+0 font 13
  label <57 %> at (28.5714, 1) middle #ffffff room 57.1429
  label <43 %> at (78.5714, 1) middle #ffffff room 42.8571
  label <7.00 ms> at (100, 1) left +8,+0 font 13
)");
  CHECK(to_figure(std::vector<BreakdownBar>{{"a, b", one}}).panels[0].title.empty());
  CHECK(to_figure(std::vector<BreakdownBar>{}).panels.empty());
}

}  // namespace foretrain::test
