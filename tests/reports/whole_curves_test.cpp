// Small figures of operators, messages and whole trainings, each checked as a whole: its numbers can be worked out in
// the head, but for those of Daly's formula.
#include "reports/figure/bandwidth.hpp"
#include "reports/figure/plot_attention.hpp"
#include "reports/figure/plot_goodput.hpp"
#include "reports/figure/plot_latency.hpp"
#include "reports/figure/plot_timeline.hpp"
#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {

namespace {

BandwidthPoint message(double size, double time) {
  return {Bytes(size), Seconds(time), BytesPerSecond(1.5 * size / time), Seconds(0.5 * time), Seconds(2.0 * time)};
}

}  // namespace

TEST_CASE("Bandwidths stand above times, what was measured below the curves", "[golden]") {
  BandwidthFigure bandwidth = {{Bytes(1e6), Bytes(1e8)},
                               {{"dgx", "all_reduce, 4 GPUs", {}, {}}, {"other", "", {}, {}}}};
  bandwidth.panels[0].curves = {{"ring", {message(1e6, 1e-4), message(1e8, 2e-3)}},
                                {"one_shot", {std::nullopt, message(1e8, 4e-3)}}};
  bandwidth.panels[0].curves[1].points[1]->high = Seconds(0.0);
  bandwidth.panels[0].measured = {message(1e6, 2e-4)};
  check_whole("bandwidths-stand-above-times-was.txt", figure_words(to_figure(bandwidth)));
  check_whole("bandwidths-stand-above-times-was-2.txt", to_text(bandwidth));
}

TEST_CASE("Attention's algorithms are compared in time and memory, and told where each begins to be faster",
          "[golden]") {
  AttentionFigure attention = {"heads of 128", "forward", {256, 512, 1024}, {}, Bytes(80e9)};
  attention.curves = {
      {{"math", {Seconds(0.001), Seconds(0.004), std::nullopt}}, {Bytes(1e9), Bytes(4e9), Bytes(90e9)}},
      {{"flash", {Seconds(0.002), Seconds(0.003), Seconds(0.006)}}, {Bytes(1e9), Bytes(2e9), Bytes(3e9)}},
      {{"fast", {Seconds(0.0005), Seconds(0.001), Seconds(0.002)}}, {Bytes(1e9), Bytes(2e9), Bytes(3e9)}},
      {{"slow", {Seconds(0.0005), Seconds(0.004), Seconds(0.02)}}, {Bytes(1e9), Bytes(2e9), Bytes(3e9)}}};
  check_whole("attentions-algorithms-compared-time-memory.txt", to_text(attention));
  attention.curves.resize(2);
  check_whole("attentions-algorithms-compared-time-memory-2.txt", figure_words(to_figure(attention)));
}

TEST_CASE("Goodput is drawn by interval, the best and Daly's marked", "[golden]") {
  Result result;
  result.scenario = "a long training";
  TrainResult& train = result.work.emplace<TrainResult>();
  train.step_time = Seconds(10.0);
  train.goodput.emplace();
  train.goodput->mtbf = Seconds(20000.0);
  train.goodput->recovery = Seconds(600.0);
  train.goodput->blocked = Seconds(60.0);
  IntervalSearch search;
  search.best = {200, 0.87};
  search.daly = {150, 0.86};
  search.tried = {{50, 0.78}, {200, 0.87}, {1000, 0.69}};
  train.goodput->intervals = search;
  check_whole("goodput-drawn-interval-best-dalys.txt", figure_words(to_figure(GoodputFigure{{result}})));
  CHECK(to_text(GoodputFigure{{result}}) == R"(a long training: goodput by interval between checkpoints

  steps  worked between  simulated  Daly's formula
  ────────────────────────────────────────────────
     50           500 s     78.0 %          85.4 %
    200        33.3 min     87.0 %          89.4 %
   1000          2.78 h     69.0 %          74.2 %
)");
  train.goodput->intervals->daly.reset();
  check_whole("goodput-drawn-interval-best-dalys-2.txt", figure_words(to_figure(GoodputFigure{{result}})));
  check_whole("goodput-drawn-interval-best-dalys-3.txt", to_text(GoodputFigure{{result, result}}));
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

TEST_CASE("Latencies are lines and points by working set, caches marks across", "[golden]") {
  const LatencyFigure latency = {
      "a CPU",
      {{Bytes(4096), Seconds(1e-9), Seconds(2e-9)}, {Bytes(65536), Seconds(4e-9), Seconds(3e-9)}},
      {{"L1", Bytes(32768)}}};
  check_whole("latencies-lines-points-working-set.txt", figure_words(to_figure(latency)));
}

}  // namespace foretrain::test
