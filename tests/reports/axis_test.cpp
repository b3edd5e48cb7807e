#include "reports/figure/axis.hpp"

#include "tests/catch.hpp"

namespace foretrain::test {
namespace {

/// "0=0 5=5 10=10": the labels that an axis chooses, or keeps.
std::string tics_of(Axis axis, int pixels, bool across = false) {
  choose_tics(axis, pixels, across);
  std::string words;
  for (const Tic& tic : axis.tics) words += fmt::format("{}{:.6g}={}", words.empty() ? "" : " ", tic.at, tic.label);
  return words;
}

std::string range_of(const std::vector<double>& values, bool upward, bool logarithmic = false) {
  Axis axis{.logarithmic = logarithmic};
  set_range(axis, values, upward);
  return fmt::format("{:.6g}..{:.6g}", axis.low, axis.high);
}

}  // namespace

TEST_CASE("Values grow by factors or by steps, and span decades where they are more than fifteen times apart") {
  for (const auto& values : {std::vector{1.0, 2.0, 4.0, 8.0}, {1.0, 2.0, 5.0, 10.0}, {1.0, 4.0}}) {
    CHECK(grow_by_factors(values));
  }
  for (const auto& values : {std::vector{1.0, 3.9}, {-1.0, 4.0, 16.0}, {1.0, 2.0, 3.0, 4.0}, {2.0, 3.0}, {0.0, 5.0}}) {
    CHECK_FALSE(grow_by_factors(values));
  }
  CHECK(spans_decades(1.0, 15.1));
  CHECK_FALSE(spans_decades(1.0, 15.0));
  CHECK_FALSE(spans_decades(0.0, 100.0));  // nothing has a logarithm at zero
}

TEST_CASE("A unit that all labels have moves to the axis") {
  std::vector<std::string> same = {"1 MB", "25 MB"}, different = {"1 MB", "1 GB"}, bare = {"1 MB", "25"};
  CHECK(common_unit(same) == "MB");
  CHECK(same == std::vector<std::string>{"1", "25"});
  CHECK(common_unit(different).empty());
  CHECK(different.back() == "1 GB");
  CHECK(common_unit(bare).empty());
}

TEST_CASE("A place on an axis is a share of its length, of its decades where it is logarithmic") {
  CHECK(Axis{.low = 2.0, .high = 12.0}.place(4.5) == Approx(0.25));
  CHECK(Axis{.logarithmic = true, .low = 1.0, .high = 10000.0}.place(10.0) == Approx(0.25));
}

TEST_CASE("Labels that would touch another are left out") {
  // "1,000" in 13 pixels is 39 wide: 20 to each side of its tic, and half a letter free. Tics 20 pixels apart: every
  // third label has room.
  Axis even{.low = 0.0, .high = 6.0};
  for (int i = 0; i <= 6; ++i) even.tics.push_back({static_cast<double>(i), "1000"});
  CHECK(tics_of(even, 120, true) == "0=1,000 1= 2= 3=1,000 4= 5= 6=1,000");
}

TEST_CASE("Axes take the largest unit that makes the largest time at least one") {
  CHECK(time_unit(Seconds(1.0)).name == "s");
  CHECK(time_unit(Seconds(0.999)).name == "ms");
  CHECK(time_unit(Seconds(2e-5)).name == "µs");
  CHECK(time_unit(Seconds(1e-9)).name == "µs");
}

TEST_CASE("Prefixes begin where a number has one digit before the point, and end with tera and nano") {
  const auto texts = [](const char* unit, const std::vector<double>& values) {
    std::string all;
    for (const double value : values) all += si_text(value, unit) + " | ";
    return all;
  };
  CHECK(texts("", {0.0, 9e-4, 1e-3, 999999.0, 1e6}) == "0 | 900 µ | 0.001 | 999999 | 1 M | ");
  CHECK(texts("B", {999.0, 1000.0, 1e15}) == "999 B | 1 kB | 1000 TB | ");
  // Nobody says kiloseconds.
  CHECK(texts("s", {0.0, 1e-12, 1e-9, 1e-5, 5000.0}) == "0 s | 0.001 ns | 1 ns | 10 µs | 5000 s | ");
}

TEST_CASE("Ranges have room around what is finite, whatever is there") {
  const double none = std::numeric_limits<double>::quiet_NaN(), far = std::numeric_limits<double>::infinity();
  CHECK(range_of({none, far}, false) == "0.5..1.5");
  CHECK(range_of({none, far}, true) == "0..1.07");
  CHECK(range_of({none, 4.0, 4.0}, false) == "3.5..4.5");
  CHECK(range_of({0.0, 0.0}, true) == "0..1");
  CHECK(range_of({-2.0, -1.0}, true) == "0..1");
  CHECK(range_of({-10.0, 40.0}, false) == "-11..41");
  CHECK(range_of({-1.0, 0.0}, false, true) == "0.925926..1.08");
  CHECK(range_of({1.0, 1e10}, false, true) == "0.630957..1.58489e+10");
  CHECK(range_of({1.0, 10.0}, true, true) == "0.714286..14");
}

TEST_CASE("Tics are round, as many as have room, and those at both ends are there") {
  const auto linear = [](double low, double high, int most) {  // a label has room of three letters
    const Axis axis{.low = low, .high = high};
    return tics_of(axis, most * 3 * axis.font);
  };
  CHECK(linear(0.0, 10.0, 5) == "0=0 2=2 4=4 6=6 8=8 10=10");
  CHECK(linear(0.0, 10.0, 4) == "0=0 5=5 10=10");
  CHECK(linear(10.0, 0.0, 4) == "0=0 5=5 10=10");
  CHECK(linear(0.0, 9.0, 1) == "0=0 5=5");  // two at least
  CHECK(linear(0.0, 0.3, 3) == "0=0.0 0.1=0.1 0.2=0.2 0.3=0.3");
  CHECK(linear(-0.02, 0.02, 4) == "-0.02=-0.02 -0.01=-0.01 0=0.00 0.01=0.01 0.02=0.02");
  CHECK(linear(0.0, 100.0, 50) == "0=0 20=20 40=40 60=60 80=80 100=100");                       // eight at most
  CHECK(tics_of({.low = 0.0, .high = 100.0}, 10'000, true).ends_with(" 80=80 90=90 100=100"));  // ten across
  const auto decades = [](double low, double high) {
    return tics_of({.logarithmic = true, .low = low, .high = high}, 300);
  };
  CHECK(decades(1.0, 1000.0) == "1=1 2=2 5=5 10=10 20=20 50=50 100=100 200=200 500=500 1000=1,000");
  CHECK(decades(1.0, 1001.0) == "1=1 10=10 100=100 1000=1,000");
  CHECK(decades(2.0, 5.0) == "2=2 5=5");
  // Within a decade they are those of a linear axis.
  CHECK(tics_of({.logarithmic = true, .low = 250e6, .high = 450e6, .unit = "B"}, 117) == "3e+08=300 MB 4e+08=400 MB");
}

TEST_CASE("Curves' labels that meet are one cluster, others stay, and all are inside") {
  CHECK(spread({}, 1.0, 0.0, 1.0).empty());
  CHECK(spread({2.0}, 3.0, 0.0, 1.0) == std::vector<double>{1.0});
  CHECK(spread({1.0, 2.0, 7.0}, 1.0, 0.0, 10.0) == std::vector<double>{1.0, 2.0, 7.0});
  // 5 and 5 become 4 and 6, which meets 6.5: all three lie around (5 + 3 + 2.5) / 3 = 3.5.
  CHECK(spread({5.0, 5.0, 6.5}, 2.0, 0.0, 10.0) == std::vector<double>{3.5, 5.5, 7.5});
  CHECK(spread({0.5, 0.5}, 2.0, 0.0, 10.0) == std::vector<double>{0.0, 2.0});
  CHECK(spread({0.5, 0.5, 0.5}, 5.0, 0.0, 1.0) == std::vector<double>{0.0, 0.5, 1.0});  // what room there is, shared
}

}  // namespace foretrain::test
