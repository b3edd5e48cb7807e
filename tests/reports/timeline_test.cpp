#include "reports/figure/plot_timeline.hpp"

#include "model/base/error.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

TimelineFigure two_rows() {
  TimelineFigure figure;
  figure.title = "a product and its launch";
  figure.entries = {{"gpu0", "product", Seconds(11e-6), Seconds(200e-6), 0, "compute"},
                    {"cpu", "dispatch", Seconds(0.0), Seconds(7e-6), 0, "host"}};
  return figure;
}

std::size_t position(const std::string& svg, const std::string& text) { return svg.find(">" + text + "<"); }

}  // namespace

TEST_CASE("a timeline names its rows, the kinds of work and the bars that have room") {
  const std::string svg = to_svg(to_figure(two_rows()));
  for (const char* text : {"gpu0", "cpu", "compute", "host", "a product and its launch"}) {
    CHECK(svg.find(text) != std::string::npos);
  }
  // 200 of 211 us on a plot of some hundred pixels hold the word; 7 us, 25 pixels, do not.
  CHECK(position(svg, "product") != std::string::npos);
  CHECK(position(svg, "dispatch") == std::string::npos);
  CHECK(svg == to_svg(to_figure(two_rows())));
}

TEST_CASE("a timeline can show a part of the time") {
  TimelineFigure figure = two_rows();
  figure.until = Seconds(10e-6);  // before the product starts, 7 of 10 us are dispatch
  const std::string svg = to_svg(to_figure(figure));
  CHECK(position(svg, "dispatch") != std::string::npos);
  CHECK(position(svg, "product") == std::string::npos);
  figure.from = Seconds(1.0);
  figure.until = Seconds::infinity();
  CHECK_THROWS_AS(to_svg(to_figure(figure)), UsageError);
}

TEST_CASE("bars too narrow to be seen apart are drawn as one") {
  // 10,000 kernels of 1 us without a gap, on a plot of less than 1,000 pixels: the picture must not grow with them.
  TimelineFigure figure;
  figure.title = "many kernels";
  for (int i = 0; i < 10'000; ++i) {
    figure.entries.push_back({"gpu0", "kernel", Seconds(1e-6 * i), Seconds(1e-6), i, "compute"});
  }
  CHECK(to_svg(to_figure(figure)).size() < 30'000);
}
