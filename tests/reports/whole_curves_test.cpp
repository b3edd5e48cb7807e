// Small figures of operators and messages, each checked as a whole: its numbers can be worked out in the head.
#include <cmath>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "reports/figure/plot_attention.hpp"
#include "reports/figure/plot_bandwidth.hpp"
#include "reports/figure/plot_timeline.hpp"
#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {

namespace {

/// A curve of times, and what they are in bus bandwidth where 1.5 times the message passes.
void add_curve(BandwidthChart& chart, const char* name, std::vector<double> times, std::vector<Span> ranges) {
  Curve rates{name, {}};
  for (std::size_t i = 0; i < times.size(); ++i) rates.values.push_back(1.5 * chart.times.places[i] / times[i]);
  chart.bandwidths.curves.push_back(std::move(rates));
  chart.times.curves.push_back({name, std::move(times), std::move(ranges)});
}

AttentionChart attention(const std::vector<Curve>& times, const std::vector<Curve>& memory) {
  CurveChart chart{.title = "heads of 128, forward",
                   .axis = "sequence length (tokens)",
                   .places = {256, 512, 1024},
                   .labels = {"256", "512", "1024"},
                   .scale = time_scale(0.02),
                   .curves = times};
  AttentionChart both{chart, chart, 80e9};
  both.memory.scale = {"memory (GB)", 1e9, [](double size) { return format_bytes(Bytes(size)); }};
  both.memory.curves = memory;
  return both;
}

}  // namespace

TEST_CASE("Bandwidths stand above times, what was measured below the curves", "[golden]") {
  BandwidthChart dgx = empty_bandwidths("dgx", "all_reduce, 4 GPUs", {1e6, 1e8});
  add_curve(dgx, "ring", {1e-4, 2e-3}, {{5e-5, 2e-4}, {1e-3, 4e-3}});
  add_curve(dgx, "one_shot", {NAN, 4e-3}, {});
  dgx.measured_times = {{1e6, 2e-4}};
  dgx.measured_bandwidths = {{1e6, 7.5e9}};
  const std::vector<BandwidthChart> charts = {dgx, empty_bandwidths("other", "", {1e6, 1e8})};
  check_whole("bandwidths-stand-above-times-was.txt", figure_words(to_figure(charts)));
  check_whole("bandwidths-stand-above-times-was-2.txt", to_text(charts));
}

TEST_CASE("Attention's algorithms are compared in time and memory, and told where each begins to be faster",
          "[golden]") {
  const std::vector<Curve> times = {{"math", {0.001, 0.004, NAN}},
                                    {"flash", {0.002, 0.003, 0.006}},
                                    {"fast", {0.0005, 0.001, 0.002}},
                                    {"slow", {0.0005, 0.004, 0.02}}};
  const std::vector<Curve> memory = {
      {"math", {1e9, 4e9, 90e9}}, {"flash", {1e9, 2e9, 3e9}}, {"fast", {1e9, 2e9, 3e9}}, {"slow", {1e9, 2e9, 3e9}}};
  check_whole("attentions-algorithms-compared-time-memory.txt", to_text(attention(times, memory)));
  check_whole("attentions-algorithms-compared-time-memory-2.txt",
              figure_words(to_figure(attention({times[0], times[1]}, {memory[0], memory[1]}))));
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
