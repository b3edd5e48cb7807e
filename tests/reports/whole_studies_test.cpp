// Figures of studies and of what was measured, each checked as a whole.
#include "reports/explain/explanation.hpp"

#include <algorithm>

#include "reports/measured/accuracy.hpp"
#include "reports/measured/rates.hpp"
#include "reports/measured/replay.hpp"
#include "reports/studies/memory_report.hpp"
#include "reports/studies/roofline.hpp"
#include "reports/studies/server_map.hpp"
#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

namespace {

MemoryTimeline::Moment moment(MemoryTimeline::Phase phase, int micro_batch, double activations) {
  MemoryTimeline::Moment one;
  one.phase = phase;
  one.micro_batch = micro_batch;
  one.parts[MemoryPart::weights] = Bytes(10e9);
  one.parts[MemoryPart::activations] = Bytes(activations);
  return one;
}

HostMeasurement replayed(const char* group, const char* algorithm, int ranks, double predicted, double measured) {
  HostMeasurement run;
  run.group = group;
  run.algorithm = algorithm;
  run.ranks = ranks;
  run.size = Bytes(4e6);
  run.rate = BytesPerSecond(62.5e6);
  run.samples = {measured};
  run.predicted = Seconds(predicted);
  return run;
}

Comparison compared(const char* group, const char* quantity, double measured, double predicted) {
  return {.name = "", .group = group, .quantity = quantity, .measured = measured, .predicted = predicted};
}

}  // namespace

TEST_CASE("Memory is stacked over the step, from what stays to what passes, its peak and the capacity marked") {
  using Phase = MemoryTimeline::Phase;
  MemoryReport report;
  report.scenario = "a step";
  report.gpu = "a100";
  report.timeline.moments = {moment(Phase::forward, 0, 1e9),  moment(Phase::loss, 0, 3e9),
                             moment(Phase::backward, 0, 2e9), moment(Phase::forward, 1, 1e9),
                             moment(Phase::backward, 1, 3e9), moment(Phase::optimizer, -1, 0.0)};
  report.timeline.peak = 1;
  report.timeline.micro_batches = report.timeline.shown = 2;
  report.timeline.capacity = Bytes(40e9);
  CHECK(figure_words(to_figure(report)) == R"(
figure <>, columns 100, legend beside
panel <a step>, <>: 700 x 380
  x <the fullest GPU's step (stage 1), layer by layer> -0.5..5.5 font 11: 0.5=forward 1 2=backward 1 3=forward
      2 4=backward 2
  y <memory (GB)> 0..44.8 grid
  series <activations> #E69F00 joined [-0.5..0.5 x 10..11] [0.5..1.5 x 10..13] [1.5..2.5 x 10..12] [2.5..3.5 x
      10..11] [3.5..4.5 x 10..13] [4.5..5.5 x 10..10]
  series <weights> #0072B2 joined [-0.5..0.5 x 0..10] [0.5..1.5 x 0..10] [1.5..2.5 x 0..10] [2.5..3.5 x 0..10]
      [3.5..4.5 x 0..10] [4.5..5.5 x 0..10]
  series <> #222222 dot circle 0.7 (1, 13)
  vertical <> at 1.5 #d0d0d0 1 dashed
  vertical <> at 2.5 #d0d0d0 1 dashed
  vertical <> at 3.5 #d0d0d0 1 dashed
  level <a100: 40.0 GB> at 40 #B00020 2
  label <peak 13.0 GB> at (1, 13) left +8,+10
)");
  report.timeline.peak = 4;
  report.timeline.stage = 2;
  report.timeline.micro_batches = 16;
  report.timeline.capacity = Bytes(12.5e9);
  const Panel late = to_figure(report).panels[0];
  CHECK(late.x.name == "the fullest GPU's step (stage 3), layer by layer, 2 of 16 micro-batches");
  CHECK(label_words(late.labels[0]) == R"(<peak 13.0 GB> at (4, 13) right -8,+10)");
  CHECK(axis_words(late.y) == R"(<memory (GB)> 0..14.56 grid)");
}

TEST_CASE("Passes are named as fully as they have room for") {
  using Phase = MemoryTimeline::Phase;
  MemoryReport report;
  report.scenario = "a step";
  report.gpu = "a100";
  const auto tics_of = [&](int passes, int micro_batches) {
    report.timeline.moments.clear();
    for (int i = 0; i < passes; ++i)
      report.timeline.moments.push_back(
          moment(i % 2 == 0 ? Phase::forward : Phase::backward, i / 2 % micro_batches, 1e9));
    std::string words;
    const Figure figure = to_figure(report);
    for (const Tic& tic : figure.panels[0].x.tics) words += tic.label + "|";
    return words;
  };
  CHECK(tics_of(7, 4) ==
        "forward 1|backward 1|forward 2|backward 2|forward 3|backward 3|forward 4|");  // 100 pixels each
  CHECK(tics_of(8, 4) == "F1|B1|F2|B2|F3|B3|F4|B4|");                                  // 87.5
  CHECK(std::ranges::count(tics_of(46, 9), '|') == 46);  // 15.2; a label of two letters takes 13
  CHECK(tics_of(54, 9) == "");                           // 12.96
}

TEST_CASE("Roofs lie over points that are as large as their share of the time") {
  RooflinePanel gpu;
  gpu.gpu = "a100";
  gpu.bandwidth = BytesPerSecond(2e12);
  gpu.roofs = {{"bf16", FlopsPerSecond(320e12)}, {"fp32", FlopsPerSecond(20e12)}};
  gpu.points = {{"product", Precision::bf16, Flops(1e11), Bytes(1e9), Seconds(1e-3), "compute"},
                {"copy", Precision::bf16, Flops(0.0), Bytes(1e9), Seconds(5e-4), "memory"},
                {"sum", Precision::fp32, Flops(1e8), Bytes(4e8), Seconds(2.5e-4), "memory"}};
  CHECK(figure_words(to_figure(RooflineFigure{{gpu}})) == R"(
figure <>, columns 100, legend above
panel <a100>, <slope: 2,000 GB/s of device memory; a point's size is its share of the time>: 560 x 396
  x <arithmetic intensity (FLOP per byte)> log 0.1..1000
  y <TFLOP a second> log 0.2..512 grid
  series <> #6c6c6c line 1.6 (0.1, 0.2) (160, 320)
  series <bf16> ends in <320 TFLOP/s> #6c6c6c line 1.6 (160, 320) (1000, 320)
  series <fp32> ends in <20 TFLOP/s> #6c6c6c line 1.6 (10, 20) (1000, 20)
  series <fp32> dot own 1 (0.25, 0.4; 1.1)
  series <bf16> dot own 1 (100, 100; 1.65)
  label <product> at (100, 100) middle font 11 free
  label <sum> at (0.25, 0.4) middle font 11 free
)");
}

TEST_CASE("A map is white within five per cent, blue with a dot where servers are faster, red where they are slower") {
  MapFigure map;
  map.x = {"x", "speed", {"1", "2", "3", "4"}};
  map.y = {"y", "size", {"small", "large"}};
  map.panel = {"ranks", "GPUs", {"8", "16"}};
  map.algorithms = {"ring"};
  const auto cell = [](double servers) {
    MapCell one;
    one.one = Seconds(servers);
    one.ring = one.all_reduce = Seconds(1.0);
    return one;
  };
  map.panels = {{"8", {cell(0.5), cell(0.95), cell(1.05), cell(1.06), cell(0.94), cell(0.94), cell(2.0), {}}},
                {"16", {cell(100.0), cell(0.01), cell(1.2), cell(1.3), {}, {}, {}, {}}}};
  Figure figure = to_figure(map);
  for (Panel& panel : figure.panels)
    std::erase_if(panel.series, [](const Series& s) { return s.boxes.empty() && s.points.empty() && s.name.empty(); });
  CHECK(figure_words(figure) == R"(
figure <>, columns 2, legend beside
panel <One dedicated server against a ring>, <8 GPUs>: 92 x 30 frame
  x <speed> -0.5..3.5 font 10: 0=1 1=2 2=3 3=4
  y <size> -0.5..1.5 font 10: 0=small 1=large
  series <> #dcebf3 [-0.5..0.5 x -0.5..0.5]
  series <> #ebf3f7 [-0.5..1.5 x 0.5..1.5]
  series <> #fbfbfb [0.5..2.5 x -0.5..0.5]
  series <> #fcefe8 [2.5..3.5 x -0.5..0.5]
  series <> #fde3d4 [1.5..2.5 x 0.5..1.5]
  series <> #10304a dot circle 0.3 (0, 0) (0, 1) (1, 1)
panel <>, <16 GPUs>: 92 x 30 frame
  x <speed> -0.5..3.5 font 10: 0=1 1=2 2=3 3=4
  y <> -0.5..1.5: -1=
  series <> #2166ac [0.5..1.5 x -0.5..0.5]
  series <> #fcefe8 [1.5..3.5 x -0.5..0.5]
  series <> #b2182b [-0.5..0.5 x -0.5..0.5]
  series <> #10304a dot circle 0.3 (1, 0)
panel <>, <time of the servers ÷ time of the other way; equal: within 5 %>: 396 x 16 frame edge #cccccc
  x <> -0.5..8.5 font 10: 0=1/16 1=1/8 2=1/4 3=1/2 4=equal 5=2 6=4 7=8 8=16
  y <> -0.5..0.5: -1=
  series <blue, with a dot: the servers are faster> #2166ac [-0.5..0.5 x -0.5..0.5]
  series <> #5698c6 [0.5..1.5 x -0.5..0.5]
  series <> #9cc7e0 [1.5..2.5 x -0.5..0.5]
  series <> #dcebf3 [2.5..3.5 x -0.5..0.5]
  series <> #fbfbfb [3.5..4.5 x -0.5..0.5]
  series <> #fde3d4 [4.5..5.5 x -0.5..0.5]
  series <> #f6b395 [5.5..6.5 x -0.5..0.5]
  series <> #e06e54 [6.5..7.5 x -0.5..0.5]
  series <red: they are slower> #b2182b [7.5..8.5 x -0.5..0.5]
  series <> #10304a dot circle 0.3 (0, 0) (1, 0) (2, 0) (3, 0)
)");
  CHECK(to_text(map) == R"(When does a parameter server win? 0 predictions

One dedicated server against a ring: cells, and the time of the servers ÷ the other

  GPUs  servers faster  within 5 %  slower   least   most
  ───────────────────────────────────────────────────────
     8               3           2       2   0.5 x    2 x
    16               1           0       3  0.01 x  100 x

  Up to which size the servers are faster, by speed

  GPUs      1      2  3  4
  ────────────────────────
     8  large  large  -  -
    16      -  small  -  -
)");
}

TEST_CASE("Resources are bars to both sides of no change, those without a part left out") {
  Explanation e;
  e.result = large_step();
  e.sensitivities = {{"arithmetic of the GPUs", Seconds(40.0), Seconds(48.4), 0.7},
                     {"network bandwidth", Seconds(44.044), Seconds(44.011), 0.2},
                     {"host", Seconds(43.979), Seconds(44.021), 0.1}};
  CHECK(figure_words(to_figure(e)) == R"(
figure <>, columns 100, legend above
panel <GPT-3 175B on 1,024 A100>, <44.0 s: change of the time>: 520 x 80 rows
  x <change of the time (%)> -11..11
  y <> 1.5..-0.5: 0=arithmetic of the GPUs 1=network bandwidth
  series <resource 10 % faster> #004B7A [-9.09091..0 x -0.35..0.35] [0..0.1 x 0.65..1.35]
  series <10 % slower> #D55E00 [0..10 x -0.35..0.35] [0..0.025 x 0.65..1.35]
  vertical <> at 0 #8c8c8c 1
)");
}

TEST_CASE("Predictions lie against measurements, the four groups that are worst told apart") {
  AccuracyReport report;
  report.cases = {compared("a", "step_time", 1.0, 1.1),           compared("b", "step_time", 2.0, 2.4),
                  compared("c", "step_time", 3.0, 3.9),           compared("d", "step_time", 4.0, 5.6),
                  compared("e", "step_time", 5.0, 5.0),           compared("f", "step_time", 5.0, 5.05),
                  compared("a", "step_time", 8.0, 10.4),          compared("a", "bus_bandwidth", 2e9, 1e9),
                  compared("g", "tokens_per_second", 100.0, 80.0)};
  CHECK(figure_words(to_figure(report)) == R"(
figure <>, columns 3, legend above
panel <Time of a training step>, <mean error and number of cases; dashed: ±10 %>: 420 x 380 frame
  x <measured> log 0.666667..15.6 in s grid
  y <predicted> log 0.666667..15.6 in s grid
  series <> #8c8c8c line 1 (0.666667, 0.666667) (15.6, 15.6)
  series <> #8c8c8c line 0.8 dashed (0.666667, 0.733333) (15.6, 17.16)
  series <> #8c8c8c line 0.8 dashed (0.666667, 0.606061) (15.6, 14.1818)
  series <2 other groups: 0.5 %, n = 2> #b4b4b4 dot circle 0.45 (5, 5.05) (5, 5)
  series <d: 40.0 %, n = 1> #0072B2 dot own 0.6 (4, 5.6)
  series <c: 30.0 %, n = 1> #D55E00 dot own 0.6 (3, 3.9)
  series <a: 20.0 %, n = 2> #009E73 dot own 0.6 (1, 1.1) (8, 10.4)
  series <b: 20.0 %, n = 1> #CC79A7 dot own 0.6 (2, 2.4)
panel <Samples or tokens a second>, <mean error and number of cases; dashed: ±10 %>: 420 x 380 frame
  x <measured> log 53.3333..150 grid
  y <predicted> log 53.3333..150 grid
  series <> #8c8c8c line 1 (53.3333, 53.3333) (150, 150)
  series <> #8c8c8c line 0.8 dashed (53.3333, 58.6667) (150, 165)
  series <> #8c8c8c line 0.8 dashed (53.3333, 48.4848) (150, 136.364)
  series <g: 25.0 %, n = 1> #0072B2 dot own 0.6 (100, 80)
panel <Bus bandwidth>, <mean error and number of cases; dashed: ±10 %>: 420 x 380 frame
  x <measured> log 6.66667e+08..3e+09 in B/s grid
  y <predicted> log 6.66667e+08..3e+09 in B/s grid
  series <> #8c8c8c line 1 (6.66667e+08, 6.66667e+08) (3e+09, 3e+09)
  series <> #8c8c8c line 0.8 dashed (6.66667e+08, 7.33333e+08) (3e+09, 3.3e+09)
  series <> #8c8c8c line 0.8 dashed (6.66667e+08, 6.06061e+08) (3e+09, 2.72727e+09)
  series <a: 100.0 %, n = 1> #0072B2 dot own 0.6 (2e+09, 1e+09)
)");
  report.cases.push_back(compared("a", "memory_per_gpu", 1e9, 1e9));
  CHECK(to_figure(report).columns == 2);
}

TEST_CASE("Rates of operators are dots and rings joined by strokes, those of collectives dots on lines") {
  RateFigure products;
  products.panels[{"dgx", 1}] = {{"bf16", {{"", {{1e12, 200e12, 220e12}, {1e13, 250e12, 250e12}}}}},
                                 {"fp32", {{"", {{1e12, 10e12, 8e12}}}}}};
  CHECK(figure_words(to_figure(products)) == R"(
figure <>, columns 3, legend above
panel <dgx>, <dots: measured; rings: predicted; mean error>: 330 x 260
  x <FLOP of one product> log 6.25e+11..1.6e+13
  y <TFLOP a second> log grid
  series <> #b4b4b4 line 0.8 (1e+12, 200) (1e+12, 220) (0, nan) (1e+13, 250) (1e+13, 250) (0, nan) (1e+12, 10)
      (1e+12, 8) (0, nan)
  series <bf16: 4.5 %, n = 2> #0072B2 dot own 0.35 measured (1e+12, 200) (1e+13, 250)
  series <fp32: 25.0 %, n = 1> #D55E00 dot own 0.35 measured (1e+12, 10)
  series <> told <bf16: 4.5 %, n = 2> #0072B2 line 1.4
  series <> told <bf16: 4.5 %, n = 2> #0072B2 dot ring 0.55 (1e+12, 220) (1e+13, 250)
  series <> told <fp32: 25.0 %, n = 1> #D55E00 line 1.4
  series <> told <fp32: 25.0 %, n = 1> #D55E00 dot ring 0.55 (1e+12, 8)
)");
  RateFigure messages;
  messages.kind = RateKind::collectives;
  messages.panels[{"dgx", 2}] = {
      {"all_gather", {{"8", {{1e6, 2e9, 3e9}, {5e6, 4e9, 4e9}}}, {"16", {{2e6, 5e9, 4e9}}}}}};
  CHECK(figure_words(to_figure(messages)) == R"(
figure <>, columns 3, legend above
panel <dgx, 2 nodes>, <dots: measured; lines and rings: predicted; mean error>: 330 x 260
  x <message> log 250000..2e+07 in B
  y <bus bandwidth (GB/s)> grid
  series <all_gather: 19.4 %, n = 3> #0072B2 dot own 0.35 measured (2e+06, 5) (0, nan) (1e+06, 2) (5e+06, 4)
  series <> told <all_gather: 19.4 %, n = 3> #0072B2 line 1.4 (1e+06, 3) (5e+06, 4)
  series <> told <all_gather: 19.4 %, n = 3> #0072B2 dot ring 0.55 (2e+06, 4)
)");
  messages.panels[{"dgx", 2}]["all_gather"].erase("16");
  messages.panels[{"dgx", 2}]["all_gather"]["8"].push_back({5e8, 100e9, 90e9});
  const Panel decades = to_figure(messages).panels[0];
  CHECK(decades.subtitle == "dots: measured; lines: predicted; mean error");
  CHECK(axis_words(decades.x) == R"(<message> log 625000..8e+08 in B)");
  CHECK(axis_words(decades.y) == R"(<bus bandwidth> log in B/s grid)");
  CHECK(series_words(decades.series[1]) ==
        R"(<> told <all_gather: 14.8 %, n = 3> #0072B2 line 1.4 (1e+06, 3e+09) (5e+06, 4e+09) (5e+08, 9e+10))");
}

TEST_CASE("Replays are curves over the workers, a panel for each group of a prefix") {
  std::vector<HostMeasurement> runs = {
      replayed("host 4 MB", "double_tree", 4, 0.03, 0.04), replayed("host 4 MB", "double_tree", 2, 0.02, 0.01),
      replayed("host 4 MB", "parameter_server", 2, 0.05, 0.06), replayed("other", "ring", 2, 0.05, 0.06),
      replayed("host b", "ring", 2, 5e-4, 6e-4)};
  runs[2].servers = 1;
  runs[4].executor = "mpi";
  CHECK(figure_words(to_figure(replay_panels(runs, "host"))) == R"(
figure <>, columns 100, legend above
panel <4.00 MB between hosts of 500 Mbit/s>, <lines: predicted; points: measured>: 330 x 290
  x <workers>: 2=2 4=4
  y <time of one all-reduce (ms)> grid
  series <double tree> ends in <40.0 ms> #0072B2 line 2 (2, 20) (4, 30)
  series <> told <double tree> #0072B2 dot own 0.8 measured (2, 10) (4, 40)
  series <1 server> ends in <60.0 ms> #D55E00 line 2 (2, 50)
  series <> told <1 server> #D55E00 dot own 0.8 measured (2, 60)
panel <4.00 MB between hosts of 500 Mbit/s>, <lines: predicted; points: measured>: 330 x 290
  x <workers>: 2=2
  y <time of one all-reduce (µs)> grid
  series <ring, Open MPI> ends in <600 us> #0072B2 line 2 (2, 500)
  series <> told <ring, Open MPI> #0072B2 dot own 0.8 measured (2, 600)
)");
  const auto curve = [&](int servers, bool shared, const char* executor) {
    runs[3].servers = servers;
    runs[3].shared_hosts = shared;
    runs[3].executor = executor;
    return replay_panels(runs, "other")[0].curves[0].name;
  };
  CHECK(curve(0, true, "gloo") == "ring, Gloo");
  CHECK(curve(2, true, "") == "a server on every worker");
  CHECK(curve(2, false, "") == "2 servers");
  CHECK(curve(1, true, "mpi") == "1 server on workers, Open MPI");
}

}  // namespace foretrain::test
