#include "reports/figure/plot.hpp"
#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "reports/figure/gnuplot.hpp"
#include "reports/figure/layout.hpp"
#include "reports/measured/accuracy.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

/// Text that a careless script would execute, and XML that would break the picture.
const std::string hostile_name = "a'b''c\"d `touch pwned` $(touch pwned) \\n @x <svg>&amp; {/Symbol} x_1";

Figure figure_with_title(const std::string& title) {
  return {.panels = {{.title = title,
                      .width = 380,
                      .height = 270,
                      .series = {{.name = "ring", .points = {{1.0, 320.0}, {4.0, 1164.0}}, .line = 2.0}}}}};
}

bool contains(const std::string& text, const std::string& piece) { return text.find(piece) != std::string::npos; }

}  // namespace

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
  const std::string svg = to_svg(figure_with_title(worst));
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

TEST_CASE("Names are drawn as they are, and never executed") {
  const std::filesystem::path trace = std::filesystem::current_path() / "pwned";
  std::filesystem::remove(trace);
  const std::string svg = to_svg(figure_with_title(hostile_name));
  CHECK(contains(svg, "a'b''c\"d `touch pwned` $(touch pwned) \\n @x &lt;svg"));
  CHECK(contains(svg, "x_1"));
  CHECK_FALSE(std::filesystem::exists(trace));
}

TEST_CASE("A figure without any point is refused") {
  ScalingChart none{.batches = {1.0, 2.0}};
  none.steps = {.places = {1.0, 2.0}, .labels = {"1", "2"}, .curves = {{"ring", {NAN, NAN}}}};
  CHECK_THROWS_AS(to_svg(to_figure(std::vector{none})), UsageError);
  CHECK_THROWS_AS(to_svg(to_figure(std::vector<BreakdownBar>{})), UsageError);
  CHECK_THROWS_AS(to_svg(to_figure(AccuracyReport{})), UsageError);
  CHECK_THROWS_AS(to_svg(to_figure(CaseFigure{})), UsageError);
  const SweepChart sweep{"key", {.places = {2.0}, .labels = {"2"}, .curves = {{"step", {NAN}}}}};
  CHECK_THROWS_AS(to_svg(to_figure(sweep)), UsageError);
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
  const Figure figure = figure_with_title("ResNet-50");
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

}  // namespace foretrain::test
