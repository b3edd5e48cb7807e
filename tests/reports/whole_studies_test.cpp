// Figures of studies and of what was measured, each checked as a whole.
#include "reports/explain/explanation.hpp"

#include "reports/measured/accuracy.hpp"
#include "reports/studies/memory_report.hpp"
#include "reports/studies/roofline.hpp"
#include "reports/studies/server_map.hpp"
#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/sample_results.hpp"
#include "tests/reports/whole.hpp"

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

Comparison compared(const char* group, const char* quantity, double measured, double predicted) {
  return {.name = "", .group = group, .quantity = quantity, .measured = measured, .predicted = predicted};
}

}  // namespace

TEST_CASE("Memory is stacked over the step, from what stays to what passes, its peak and the capacity marked",
          "[golden]") {
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
  check_whole("memory-stacked-over-step-from.txt", figure_words(to_figure(report)));
  report.timeline.peak = 4;
  report.timeline.stage = 2;
  report.timeline.micro_batches = 16;
  report.timeline.capacity = Bytes(12.5e9);
  const Panel late = to_figure(report).panels[0];
  CHECK(late.x.name == "step of pipeline stage 3, layer by layer, 2 of 16 micro-batches");
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

TEST_CASE("Roofs lie over points that are as large as their share of the time", "[golden]") {
  RooflinePanel gpu;
  gpu.gpu = "a100";
  gpu.bandwidth = BytesPerSecond(2e12);
  gpu.roofs = {{"bf16", FlopsPerSecond(320e12)}, {"fp32", FlopsPerSecond(20e12)}};
  gpu.points = {{"product", Precision::bf16, Flops(1e11), Bytes(1e9), Seconds(1e-3), "compute"},
                {"copy", Precision::bf16, Flops(0.0), Bytes(1e9), Seconds(5e-4), "memory"},
                {"sum", Precision::fp32, Flops(1e8), Bytes(4e8), Seconds(2.5e-4), "memory"}};
  check_whole("roofs-lie-over-points-large.txt", figure_words(to_figure(RooflineFigure{{gpu}})));
}

TEST_CASE("A map is white within five per cent, blue with a dot where servers are faster, red where they are slower",
          "[golden]") {
  MapFigure map;
  map.x = {"x", "speed", {"1", "2", "3", "4"}};
  map.y = {"y", "size", {"small", "large"}};
  map.panel = {"ranks", "GPUs", {"8", "16"}};
  map.algorithms = {"ring"};
  const auto cell = [](double servers) {
    return MapCell{Seconds(servers), std::nullopt, std::nullopt, Seconds(1.0), Seconds(1.0)};
  };
  map.panels = {{"8", {cell(0.5), cell(0.95), cell(1.05), cell(1.06), cell(0.94), cell(0.94), cell(2.0), {}}},
                {"16", {cell(100.0), cell(0.01), cell(1.2), cell(1.3), {}, {}, {}, {}}}};
  Figure figure = to_figure(map);
  for (Panel& panel : figure.panels)
    std::erase_if(panel.series, [](const Series& s) { return s.boxes.empty() && s.points.empty() && s.name.empty(); });
  check_whole("map-white-within-five-per.txt", figure_words(figure));
  check_whole("map-white-within-five-per-2.txt", to_text(map));
}

TEST_CASE("Resources are bars to both sides of no change, those without a part left out", "[golden]") {
  Explanation e;
  e.result = large_step();
  e.sensitivities = {{"GPU compute", Seconds(40.0), Seconds(48.4), 0.7},
                     {"network bandwidth", Seconds(44.044), Seconds(44.011), 0.2},
                     {"host", Seconds(43.979), Seconds(44.021), 0.1}};
  check_whole("resources-bars-both-sides-no.txt", figure_words(to_figure(e)));
}

TEST_CASE("Predictions lie against measurements, the four worst groups by themselves", "[golden]") {
  AccuracyReport report;
  report.cases = {compared("a", "step_time", 1.0, 1.1),           compared("b", "step_time", 2.0, 2.4),
                  compared("c", "step_time", 3.0, 3.9),           compared("d", "step_time", 4.0, 5.6),
                  compared("e", "step_time", 5.0, 5.0),           compared("f", "step_time", 5.0, 5.05),
                  compared("a", "step_time", 8.0, 10.4),          compared("a", "bus_bandwidth", 2e9, 1e9),
                  compared("g", "tokens_per_second", 100.0, 80.0)};
  check_whole("predictions-lie-against-measurements-four.txt", figure_words(to_figure(report)));
  report.cases.push_back(compared("a", "memory_per_gpu", 1e9, 1e9));
  CHECK(to_figure(report).columns == 2);
}

}  // namespace foretrain::test
