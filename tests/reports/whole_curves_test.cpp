// Small figures of operators, messages and whole trainings, each checked as a whole: its numbers can be worked out in
// the head, but for those of Daly's formula.
#include "reports/figure/bandwidth.hpp"
#include "reports/figure/plot_attention.hpp"
#include "reports/figure/plot_goodput.hpp"
#include "reports/figure/plot_latency.hpp"
#include "reports/figure/plot_timeline.hpp"
#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"

namespace foretrain::test {

namespace {

BandwidthPoint message(double size, double time) {
  return {Bytes(size), Seconds(time), BytesPerSecond(1.5 * size / time), Seconds(0.5 * time), Seconds(2.0 * time)};
}

}  // namespace

TEST_CASE("Bandwidths stand above times, what was measured below the curves") {
  BandwidthFigure bandwidth = {{Bytes(1e6), Bytes(1e8)},
                               {{"dgx", "all_reduce, 4 GPUs", {}, {}}, {"other", "", {}, {}}}};
  bandwidth.panels[0].curves = {{"ring", {message(1e6, 1e-4), message(1e8, 2e-3)}},
                                {"one_shot", {std::nullopt, message(1e8, 4e-3)}}};
  bandwidth.panels[0].curves[1].points[1]->high = Seconds(0.0);
  bandwidth.panels[0].measured = {message(1e6, 2e-4)};
  CHECK(figure_words(to_figure(bandwidth)) == R"(
figure <>, columns 2, legend shared
panel <dgx>, <all_reduce, 4 GPUs>: 300 x 210
  x <> log 769231..1.3e+08 in B grid: 1e+06= 2e+06= 5e+06= 1e+07= 2e+07= 5e+07= 1e+08=
  y <bus bandwidth (GB/s)> grid
  series <measured> #E69F00 dot circle 0.5 (1e+06, 7.5)
  series <ring, predicted> #0072B2 line 2.2 (1e+06, 15)[7.5..30] (1e+08, 75)[37.5..150]
  series <one shot, predicted> #D55E00 line 2.2 (0, nan) (1e+08, 37.5)
panel <other>, <>: 300 x 210
  x <> log 769231..1.3e+08 in B grid: 1e+06= 2e+06= 5e+06= 1e+07= 2e+07= 5e+07= 1e+08=
  y <> grid
panel <>, <>: 300 x 210
  x <message> log 769231..1.3e+08 in B grid
  y <time> log in s grid
  series <measured> #E69F00 dot circle 0.5 (1e+06, 0.0002)
  series <ring, predicted> #0072B2 line 2.2 (1e+06, 0.0001)[5e-05..0.0002] (1e+08, 0.002)[0.001..0.004]
  series <one shot, predicted> #D55E00 line 2.2 (0, nan) (1e+08, 0.004)
panel <>, <>: 300 x 210
  x <message> log 769231..1.3e+08 in B grid
  y <> log in s grid
)");
  CHECK(to_text(bandwidth) == R"(dgx: all_reduce, 4 GPUs

  message     ring        bus  one_shot        bus
  ────────────────────────────────────────────────
  1.00 MB   100 us  15.0 GB/s         -          -
   100 MB  2.00 ms  75.0 GB/s   4.00 ms  37.5 GB/s

other: 

  message
  ───────
  1.00 MB
   100 MB
)");
}

TEST_CASE("Attention's algorithms are compared in time and memory, and told where each begins to be faster") {
  AttentionFigure attention = {"heads of 128", "forward", {256, 512, 1024}, {}, Bytes(80e9)};
  attention.curves = {
      {{"math", {Seconds(0.001), Seconds(0.004), std::nullopt}}, {Bytes(1e9), Bytes(4e9), Bytes(90e9)}},
      {{"flash", {Seconds(0.002), Seconds(0.003), Seconds(0.006)}}, {Bytes(1e9), Bytes(2e9), Bytes(3e9)}},
      {{"fast", {Seconds(0.0005), Seconds(0.001), Seconds(0.002)}}, {Bytes(1e9), Bytes(2e9), Bytes(3e9)}},
      {{"slow", {Seconds(0.0005), Seconds(0.004), Seconds(0.02)}}, {Bytes(1e9), Bytes(2e9), Bytes(3e9)}}};
  CHECK(to_text(attention) == R"(heads of 128, forward

  time          math    flash     fast     slow
  ─────────────────────────────────────────────
   256       1.00 ms  2.00 ms   500 us   500 us
   512       4.00 ms  3.00 ms  1.00 ms  4.00 ms
  1024  does not fit  6.00 ms  2.00 ms  20.0 ms


  memory     math    flash     fast     slow
  ──────────────────────────────────────────
     256  1.00 GB  1.00 GB  1.00 GB  1.00 GB
     512  4.00 GB  2.00 GB  2.00 GB  2.00 GB
    1024  90.0 GB  3.00 GB  3.00 GB  3.00 GB

  flash is faster than math from 512 on
  fast is faster than math at every length
  slow is not faster than math at these lengths
)");
  attention.curves.resize(2);
  CHECK(figure_words(to_figure(attention)) == R"(
figure <heads of 128, forward>, columns 100, legend above
panel <Time>, <>: 380 x 330
  x <sequence length (tokens)> log: 256=256 512=512 1024=1024
  y <time (ms)> log grid
  series <math> ends in <> line 2.5 dot own 0.6 (256, 1) (512, 4) (1024, nan)
  series <flash> ends in <> line 2.5 dot own 0.6 (256, 2) (512, 3) (1024, 6)
panel <Memory at its peak>, <>: 380 x 330
  x <sequence length (tokens)> log: 256=256 512=512 1024=1024
  y <memory (GB)> log grid
  series <math> ends in <> line 2.5 dot own 0.6 (256, 1) (512, 4) (1024, 90)
  series <flash> ends in <> line 2.5 dot own 0.6 (256, 1) (512, 2) (1024, 3)
  level <the GPU has 80.0 GB> at 80 #8c8c8c 1 dashed
)");
}

TEST_CASE("Goodput is drawn by interval, the best and Daly's marked") {
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
  CHECK(figure_words(to_figure(GoodputFigure{{result}})) == R"(
figure <>, columns 2, legend shared
panel <a long training>, <>: 420 x 280
  x <steps between checkpoints> log
  y <steps that last, share of the time (%)> 60..100 grid
  series <simulated> line 2 dot own 0.5 (50, 78) (200, 87) (1000, 69)
  series <Daly's formula> line 1.5 dashed (50, 85.4395) (200, 89.4491) (1000, 74.23)
  series <> #333333 dot ring 1.4 (200, 87)
  series <> #333333 dot ring 1.4 (150, 86)
  label <best: 200> at (200, 87) middle +0,-22
  label <Daly: 150> at (150, 86) middle +0,-38
)");
  CHECK(to_text(GoodputFigure{{result}}) == R"(a long training: goodput by interval between checkpoints

  steps  worked between  simulated  Daly's formula
  ────────────────────────────────────────────────
     50           500 s     78.0 %          85.4 %
    200        33.3 min     87.0 %          89.4 %
   1000          2.78 h     69.0 %          74.2 %
)");
  train.goodput->intervals->daly.reset();
  CHECK(figure_words(to_figure(GoodputFigure{{result}})) == R"(
figure <>, columns 2, legend shared
panel <a long training>, <>: 420 x 280
  x <steps between checkpoints> log
  y <steps that last, share of the time (%)> 60..100 grid
  series <simulated> line 2 dot own 0.5 (50, 78) (200, 87) (1000, 69)
  series <> #333333 dot ring 1.4 (200, 87)
  label <best: 200> at (200, 87) middle +0,-22
)");
  CHECK(to_text(GoodputFigure{{result, result}}) == R"(a long training: goodput by interval between checkpoints

  steps  worked between  simulated  Daly's formula
  ────────────────────────────────────────────────
     50           500 s     78.0 %               -
    200        33.3 min     87.0 %               -
   1000          2.78 h     69.0 %               -

a long training: goodput by interval between checkpoints

  steps  worked between  simulated  Daly's formula
  ────────────────────────────────────────────────
     50           500 s     78.0 %               -
    200        33.3 min     87.0 %               -
   1000          2.78 h     69.0 %               -
)");
}

TEST_CASE("A timeline has a row for each resource, host threads first, and bars where something ran") {
  TimelineFigure timeline;
  timeline.title = "a step";
  timeline.entries = {{"gpu0", "forward 1", Seconds(0.0), Seconds(0.3), 0, "compute"},
                      {"gpu0", "backward 1", Seconds(0.4), Seconds(0.4), 0, "compute"},
                      {"link", "tiny", Seconds(0.2), Seconds(0.0001), 0, "communication"},
                      {"link", "tiny", Seconds(0.2002), Seconds(0.0001), 0, "communication"},
                      {"link", "all-reduce", Seconds(0.5), Seconds(0.5), 0, "communication"},
                      {"cpu0", "launch", Seconds(0.0), Seconds(0.1), 0, "host"},
                      {"cpu0", "unheard", Seconds(0.6), Seconds(0.1), 0, "of"}};
  CHECK(figure_words(to_figure(timeline)) == R"(
figure <>, columns 100, legend above
panel <a step>, <>: 760 x 90 rows edge #ffffff
  x <time (s)> 0..1 grid
  y <> 0.5..3.5: 3=cpu0 2=gpu0 1=link
  series <forward> #004B7A [0.6..0.7 x 2.63..3.37] [0..0.3 x 1.63..2.37]
  series <backward> #56B4E9 [0.4..0.8 x 1.63..2.37]
  series <communication> #D55E00 [0.2..0.202174 x 0.63..1.37] [0.5..1 x 0.63..1.37]
  series <host> #00694D [0..0.1 x 2.63..3.37]
  label <launch> at (0.05, 3) middle #ffffff font 11 room 0.1
  label <unheard> at (0.65, 3) middle #ffffff font 11 room 0.1
  label <forward 1> at (0.15, 2) middle #ffffff font 11 room 0.3
  label <backward 1> at (0.6, 2) middle #000000 font 11 room 0.4
  label <all-reduce> at (0.75, 1) middle #ffffff font 11 room 0.5
)");
  timeline.from = Seconds(0.3);
  timeline.until = Seconds(0.6);
  CHECK(figure_words(to_figure(timeline)) == R"(
figure <>, columns 100, legend above
panel <a step>, <>: 760 x 90 rows edge #ffffff
  x <time (ms)> 300..600 grid
  y <> 0.5..3.5: 3=cpu0 2=gpu0 1=link
  series <backward> #56B4E9 [400..600 x 1.63..2.37]
  series <communication> #D55E00 [500..600 x 0.63..1.37]
  label <backward 1> at (500, 2) middle #000000 font 11 room 200
  label <all-reduce> at (550, 1) middle #ffffff font 11 room 100
)");
}

TEST_CASE("Latencies are lines and points by working set, caches marks across") {
  const LatencyFigure latency = {
      "a CPU",
      {{Bytes(4096), Seconds(1e-9), Seconds(2e-9)}, {Bytes(65536), Seconds(4e-9), Seconds(3e-9)}},
      {{"L1", Bytes(32768)}}};
  CHECK(figure_words(to_figure(latency)) == R"(
figure <>, columns 100, legend above
panel <a CPU>, <line: predicted; points: measured; dashed: size of a cache>: 660 x 290
  x <working set> log2
  y <time of one dependent load (ns)> log grid
  series <> line 2 (4096, 1) (65536, 4)
  series <> dot own 0.7 (4096, 2) (65536, 3)
  vertical <L1> at 32768 #8c8c8c 1 dashed
)");
}

}  // namespace foretrain::test
