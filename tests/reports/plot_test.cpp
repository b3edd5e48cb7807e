#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "model/base/error.hpp"
#include "model/base/process.hpp"
#include "model/base/utf8.hpp"
#include "reports/figure/gnuplot.hpp"
#include "reports/figure/plot_breakdown.hpp"
#include "reports/figure/plot_scaling.hpp"
#include "reports/figure/plot_sweep.hpp"
#include "reports/figure/series_style.hpp"
#include "reports/measured/accuracy.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

namespace {

/// What a careless script would execute, and XML that would break the picture.
const std::string hostile_name = "a'b\"c `touch pwned` $(touch pwned) \\n @x <svg>&amp; {/Symbol} x_1";

ScalingFigure figure_with_title(const std::string& title) {
  return {
      {1, 2, 4},
      {{title,
        "64 images per GPU",
        {{"ring", {Seconds(0.2), Seconds(0.21), Seconds(0.22)}}, {"naive", {Seconds(0.2), std::nullopt, Seconds(0.4)}}},
        "images",
        {64.0, 128.0, 256.0}}}};
}

bool contains(const std::string& text, const std::string& piece) { return text.find(piece) != std::string::npos; }

SweepFigure sweep_figure() {
  return {
      "ResNet-50",
      "plan.sync.bucket",
      {"1 MB", "25 MB", "100 MB"},
      {1.0, 25.0, 100.0},
      {{"step", {Seconds(0.3), Seconds(0.2), Seconds(0.25)}}, {"compute", {Seconds(0.1), std::nullopt, Seconds(0.1)}}},
      1};
}

}  // namespace

TEST_CASE("A sweep's table says where the step is shortest") {
  const std::string text = to_text(sweep_figure());
  CHECK_THAT(text, Catch::Contains("plan.sync.bucket    step  compute"));
  CHECK_THAT(text, Catch::Contains("step is shortest at 25 MB: 200 ms"));
}

TEST_CASE("A sweep is drawn with its key's title, its values, its curves and its best value") {
  const std::string svg = to_svg(to_figure(sweep_figure()));
  for (const char* label : {"ResNet-50", "gradient bucket (MB)", ">25<", ">100<", "time (ms)", "step  250 ms",
                            "compute  100 ms", "best: 25 MB"}) {
    INFO(label);
    CHECK(contains(svg, label));
  }
  CHECK(svg == to_svg(to_figure(sweep_figure())));
}

TEST_CASE("A best value at the end of a sweep is not called the best") {
  SweepFigure figure = sweep_figure();
  figure.curves.front().times.back() = Seconds(0.1);
  CHECK_FALSE(contains(to_svg(to_figure(figure)), "best:"));
}

TEST_CASE("Sweeps of one value, over decades of time, and without any prediction") {
  SweepFigure figure = sweep_figure();
  figure.curves.front().times.front() = Seconds(300.0);
  CHECK(contains(to_svg(to_figure(figure)), "time (s)"));
  CHECK_NOTHROW(to_svg(to_figure(SweepFigure{"one", "key", {"2"}, {2.0}, {{"step", {Seconds(1.0)}}}, 1})));
  CHECK_NOTHROW(to_svg(
      to_figure(SweepFigure{"zero", "key", {"0", "5"}, {0.0, 5.0}, {{"step", {Seconds(1.0), Seconds(2.0)}}}, 1})));
  CHECK_THROWS_AS(to_svg(to_figure(SweepFigure{"none", "key", {"2"}, {2.0}, {{"step", {std::nullopt}}}, 1})),
                  UsageError);
}

TEST_CASE("A string of gnuplot keeps every character but control characters, and ends where it ends") {
  CHECK(gnuplot_string("plain") == R"("plain")");
  CHECK(gnuplot_string(R"(it's a \ "`)") == R"("it\047s a \134 \042\140")");
  CHECK(gnuplot_string("a\nb\tc") == R"("a b c")");
  CHECK(gnuplot_string("µs ≤ 😀") == R"("µs ≤ 😀")");
}

TEST_CASE("Whatever a name holds, its picture is XML 1.0") {
  // Section 2.2 of XML 1.0: no control characters, no surrogates, no U+FFFE and U+FFFF; and what is no UTF-8 is no
  // text.
  const std::string worst = "a\x01\x1b[31m\x7f\xc2\x85\xed\xa0\x80\xff\xef\xbf\xbe\xef\xbf\xbfz ]]> <&\"' \xc3";
  CHECK(gnuplot_string("a\x01z\xffz\x7f") == "\"a z\uFFFDz \"");
  const std::string svg = to_svg(to_figure(figure_with_title(worst)));
  bool legal = true;
  for (std::size_t at = 0, length = 1; at < svg.size() && length > 0; at += length) {
    length = character_length(svg, at);
    legal = legal && length > 0;
  }
  CHECK(legal);
  CHECK(contains(svg, "&lt;&amp;"));
  CHECK(contains(svg, "]]&gt;"));
  // Section 2.4: "]]>" stands nowhere but at the end of a section.
  CHECK_FALSE(contains(svg, "]]>"));
}

TEST_CASE("Apostrophes in a row are drawn as they are") {
  CHECK(contains(to_svg(to_figure(figure_with_title("rock''n'''roll"))), "rock''n'''roll"));
}

TEST_CASE("Names are drawn as they are, and never executed") {
  const std::filesystem::path trace = std::filesystem::current_path() / "pwned";
  std::filesystem::remove(trace);
  const std::string svg = to_svg(to_figure(figure_with_title(hostile_name)));
  CHECK(contains(svg, "`touch pwned` $(touch pwned) \\n @x &lt;svg"));
  CHECK(contains(svg, "x_1"));
  CHECK_FALSE(std::filesystem::exists(trace));
}

TEST_CASE("The same figure gives the same bytes") {
  CHECK(to_svg(to_figure(figure_with_title("ResNet-50"))) == to_svg(to_figure(figure_with_title("ResNet-50"))));
}

TEST_CASE("A scaling plot shows throughput and efficiency beside the ideal") {
  // One GPU does 64 images in 0.2 s, 320 a second. Four by the ring do 256 in 0.22 s, 1,164 of 1,280 a second or 91 %;
  // the naive way's 256 in 0.4 s are 640 a second or 50 %.
  const std::string svg = to_svg(to_figure(figure_with_title("ResNet-50")));
  for (const char* label : {"ResNet-50", "64 images per GPU", "images a second", "share of the ideal (%)", "GPUs",
                            ">ideal<", "ring  1.16 K", "naive  640", "ring  91 %", "naive  50 %"}) {
    INFO(label);
    CHECK(contains(svg, label));
  }
}

TEST_CASE("The table of a scaling figure reads as expected", "[golden]") {
  const std::string text = to_text(figure_with_title("ResNet-50"));
  CHECK(text == golden("scaling.txt", text));
}

TEST_CASE("A figure without any time is refused") {
  CHECK_THROWS_AS(to_svg(to_figure(ScalingFigure{{1, 2}, {{"empty", "", {{"ring", {std::nullopt, std::nullopt}}}}}})),
                  UsageError);
  CHECK_THROWS_AS(to_svg(to_figure(std::vector<BreakdownBar>{})), UsageError);
  CHECK_THROWS_AS(to_svg(to_figure(AccuracyReport{})), UsageError);
}

TEST_CASE("A breakdown names the parts that occur, and no others") {
  const std::string svg = to_svg(to_figure(std::vector<BreakdownBar>{{"one", large_step().train()->breakdown}}));
  CHECK(contains(svg, "pipeline bubble"));
  CHECK(contains(svg, "time of one step (s)"));
  CHECK(contains(svg, "75 %"));  // 33 of 44 s are compute
  CHECK_FALSE(contains(svg, "waiting for data"));
}

TEST_CASE("Bars that cannot be compared in time are drawn in shares") {
  const Breakdown quick{Seconds(0.4), Seconds(0.1), Seconds(0), Seconds(0), Seconds(0), Seconds(0)};
  const std::string svg =
      to_svg(to_figure(std::vector<BreakdownBar>{{"slow", large_step().train()->breakdown}, {"quick", quick}}));
  CHECK(contains(svg, "share of the step (%)"));
  CHECK(contains(svg, "500 ms"));
}

TEST_CASE("An accuracy plot has a panel per quantity and an entry per group") {
  const AccuracyReport report =
      accuracy_report({{"a", "alpha", "step_time", 1.0, 1.1}, {"b", "beta", "samples_per_second", 50.0, 45.0}}, {}, 0);
  const std::string svg = to_svg(to_figure(report));
  for (const char* label :
       {"measured", ">1 s<", "Samples or tokens a second", "alpha: 10.0 %, n = 1", "beta: 11.1 %, n = 1"}) {
    INFO(label);
    CHECK(contains(svg, label));
  }
}

TEST_CASE("An accuracy plot tells the four worst groups apart, and counts the others as one") {
  // Errors of 10, 20, …, 60 %: the groups of 10 and 20 % are the quiet ones, 15 % together.
  std::vector<Comparison> cases;
  for (int i = 1; i <= 6; ++i) cases.push_back({"case", fmt::format("g{}", i), "step_time", 1.0, 1.0 + 0.1 * i});
  const std::string svg = to_svg(to_figure(accuracy_report(cases, {}, 0)));
  for (const char* label : {"g6: 60.0 %", "g3: 30.0 %", "2 other groups: 15.0 %, n = 2"}) CHECK(contains(svg, label));
  CHECK_FALSE(contains(svg, "g2: "));
}

TEST_CASE("Every colour of the palette has a dot and a dash of its own, and areas differ in grey") {
  std::set<int> dots;
  std::set<std::string> dashes;
  for (const std::string_view colour : palette) {
    Series series{.colour = colour, .line = 2.0};
    dashes.insert(dash_clause(series));
    series.dot = Dot::own;
    dots.insert(point_type(series));
    CHECK(dash_clause(series).empty());  // its dots tell it apart
  }
  CHECK(dots.size() == palette.size());
  CHECK(dashes.size() == palette.size());
  // CIE 1976 lightness of the sRGB colour: 8 of 100 apart is seen without looking twice.
  std::vector<double> lightness;
  for (const std::string_view colour : area_palette) {
    const auto linear = [&](std::size_t at) {
      const double part = std::stoi(std::string(colour.substr(at, 2)), nullptr, 16) / 255.0;
      return part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
    };
    lightness.push_back(116.0 * std::cbrt(0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5)) - 16.0);
  }
  std::ranges::sort(lightness);
  for (std::size_t i = 1; i < lightness.size(); ++i) CHECK(lightness[i] - lightness[i - 1] > 8.0);
}

TEST_CASE("A picture is SVG, PNG or PDF by its file's name, the same every time") {
  const Figure figure = to_figure(sweep_figure());
  const std::string png = to_picture(figure, PictureFormat::png), pdf = to_picture(figure, PictureFormat::pdf);
  CHECK(png.starts_with("\x89PNG\r\n"));
  CHECK(pdf.starts_with("%PDF-"));
  CHECK(png == to_picture(figure, PictureFormat::png));
  CHECK(pdf == to_picture(figure, PictureFormat::pdf));
  // Cairo from 1.18 on packs the date where it is not seen, and there it stays.
  CHECK(contains(pdf, "/CreationDate") == contains(pdf, "/CreationDate (D:19700101000000"));
  CHECK(picture_format("a.b/c.png") == PictureFormat::png);
  for (const char* other : {"picture", "picture.jpeg", "trace.json", ".svg.txt"}) CHECK_FALSE(picture_format(other));
}
TEST_CASE("A script that gnuplot rejects is an error with its message") {
  CHECK_THROWS_WITH(run_gnuplot("no such command\n"), Catch::Contains("invalid command"));
}

TEST_CASE("A filter gets its input, and its output and status come back") {
  const std::string megabyte(1'000'000, 'x');
  CHECK(run_filter({"cat"}, megabyte).output == megabyte);
  CHECK(run_filter({"false"}, "").status == 1);
  CHECK(run_filter({"true"}, megabyte).status == 0);  // it leaves without reading
  CHECK_THROWS_AS(run_filter({"no-such-program-of-any-name"}, ""), std::system_error);
}

}  // namespace foretrain::test
