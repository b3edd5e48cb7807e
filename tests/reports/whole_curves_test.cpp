// Small timelines, each checked as a whole: its numbers can be worked out in the head.
#include "model/base/error.hpp"
#include "reports/figure/plot.hpp"
#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {

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
