#include "reports/figure/axis.hpp"

#include <fmt/format.h>

#include <limits>

#include "tests/catch.hpp"

namespace foretrain::test {
namespace {

std::string words_of(const std::vector<Tic>& tics) {
  std::string words;
  for (const Tic& tic : tics) words += fmt::format("{}{:.6g}={}", words.empty() ? "" : " ", tic.at, tic.label);
  return words;
}

std::string range_of(const std::vector<double>& values, bool upward, bool logarithmic = false) {
  Axis axis{.logarithmic = logarithmic};
  set_range(axis, values, upward);
  return fmt::format("{:.6g}..{:.6g}", axis.low, axis.high);
}

}  // namespace

TEST_CASE("Values grow by factors or by steps") {
  CHECK(grow_by_factors({1.0, 2.0, 4.0, 8.0}));
  CHECK(grow_by_factors({1.0, 2.0, 5.0, 10.0}));
  CHECK(grow_by_factors({1.0, 4.0}));
  CHECK_FALSE(grow_by_factors({1.0, 3.9}));
  CHECK_FALSE(grow_by_factors({-1.0, 4.0, 16.0}));
  CHECK_FALSE(grow_by_factors({1.0, 2.0, 3.0, 4.0}));
  CHECK_FALSE(grow_by_factors({2.0, 3.0}));
  CHECK_FALSE(grow_by_factors({0.0, 5.0}));
}

TEST_CASE("A unit that all labels have moves to the axis") {
  std::vector<std::string> same = {"1 MB", "25 MB"}, different = {"1 MB", "1 GB"}, bare = {"1 MB", "25"};
  CHECK(common_unit(same) == "MB");
  CHECK(same == std::vector<std::string>{"1", "25"});
  CHECK(common_unit(different).empty());
  CHECK(different.back() == "1 GB");
  CHECK(common_unit(bare).empty());
}

TEST_CASE("An axis is logarithmic where its values are more than fifteen times apart") {
  CHECK(spans_decades(1.0, 15.1));
  CHECK_FALSE(spans_decades(1.0, 15.0));
  CHECK_FALSE(spans_decades(2.0, 3.0));
  CHECK_FALSE(spans_decades(0.0, 100.0));  // nothing has a logarithm at zero
}

TEST_CASE("A place on an axis is a share of its length, of its decades where it is logarithmic") {
  CHECK(Axis{.low = 2.0, .high = 12.0}.place(4.5) == Approx(0.25));
  CHECK(Axis{.logarithmic = true, .low = 1.0, .high = 10000.0}.place(10.0) == Approx(0.25));
}

TEST_CASE("Labels that would touch another are left out, but the first and the last stay") {
  // 100 pixels for 0 to 10. "1000" in 13 pixels is 31 wide: 16 to each side of its tic, and half a letter free.
  Axis axis{.low = 0.0, .high = 10.0, .tics = {{1.0, "1000"}, {2.0, "1000"}, {5.0, "1000"}, {6.0, ""}, {9.0, "1000"}}};
  drop_crowded(axis, 100);
  std::vector<double> kept;
  for (const Tic& tic : axis.tics) kept.push_back(tic.at);
  CHECK(kept == std::vector<double>{1.0, 5.0, 6.0, 9.0});
}

TEST_CASE("Of labels that are evenly apart every second stays, or every third") {
  // Tics 20 pixels apart, labels of 31 and half a letter: every second.
  Axis axis{.low = 0.0, .high = 6.0};
  for (int i = 0; i <= 6; ++i) axis.tics.push_back({static_cast<double>(i), "1000"});
  drop_crowded(axis, 120);
  std::string shown;
  for (const Tic& tic : axis.tics) shown += tic.label.empty() ? '-' : 'x';
  CHECK(shown == "x-x-x-x");
}

TEST_CASE("A logarithmic axis within a decade has tics of a linear one") {
  Axis axis{.logarithmic = true, .low = 250e6, .high = 900e6, .unit = "B"};
  choose_tics(axis, 300, false);
  CHECK(axis.tics.size() > 2);
  CHECK(axis.tics.front().label == "300 MB");
}

TEST_CASE("Axes take the largest unit that makes the largest time at least one") {
  CHECK(time_unit(Seconds(1.0)).name == "s");
  CHECK(time_unit(Seconds(0.999)).name == "ms");
  CHECK(time_unit(Seconds(2e-5)).name == "µs");
  CHECK(time_unit(Seconds(1e-9)).name == "µs");
}

TEST_CASE("Labels stay inside, and share the room where there is too little") {
  const std::vector<double> at_top = spread({0.98, 1.0}, 0.1, 0.0, 1.0);
  CHECK(at_top[0] == Approx(0.9));
  CHECK(at_top[1] == Approx(1.0));
  const std::vector<double> crowded = spread({0.5, 0.5, 0.5}, 5.0, 0.0, 1.0);
  CHECK(crowded[0] == Approx(0.0).margin(1e-12));
  CHECK(crowded[1] == Approx(0.5));
  CHECK(crowded[2] == Approx(1.0));
}

TEST_CASE("Prefixes begin where a number has one digit before the point, and end with tera and nano") {
  CHECK(si_text(1e-5, "s") == "10 µs");
  CHECK(si_text(5000.0, "s") == "5000 s");  // nobody says kiloseconds
  CHECK(si_text(1e-3, "") == "0.001");
  CHECK(si_text(9e-4, "") == "900 µ");
  CHECK(si_text(999999.0, "") == "999999");
  CHECK(si_text(1e6, "") == "1 M");
  CHECK(si_text(0.0, "") == "0");
  CHECK(si_text(0.0, "s") == "0 s");
  CHECK(si_text(1000.0, "B") == "1 kB");
  CHECK(si_text(999.0, "B") == "999 B");
  CHECK(si_text(1e15, "B") == "1000 TB");
  CHECK(si_text(1e-12, "s") == "0.001 ns");
  CHECK(si_text(1e-9, "s") == "1 ns");
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
  CHECK(range_of({100.0, 100.0}, false, true) == "92.5926..108");
  CHECK(range_of({1.0, 1e10}, false, true) == "0.630957..1.58489e+10");
  CHECK(range_of({1.0, 10.0}, true, true) == "0.714286..14");
}

TEST_CASE("Tics are round, as many as have room, and those at both ends are there") {
  CHECK(words_of(logarithmic_tics(1.0, 1000.0)) == "1=1 2=2 5=5 10=10 20=20 50=50 100=100 200=200 500=500 1000=1000");
  CHECK(words_of(logarithmic_tics(1.0, 1001.0)) == "1=1 10=10 100=100 1000=1000");
  CHECK(words_of(logarithmic_tics(2.0, 5.0)) == "2=2 5=5");
  CHECK(words_of(binary_tics(1024.0, 4096.0)) == "1024=1.00 KiB 2048=2.00 KiB 4096=4.00 KiB");
  CHECK(words_of(linear_tics(0.0, 10.0, 5)) == "0=0 2=2 4=4 6=6 8=8 10=10");
  CHECK(words_of(linear_tics(0.0, 10.0, 4)) == "0=0 5=5 10=10");
  CHECK(words_of(linear_tics(10.0, 0.0, 4)) == "0=0 5=5 10=10");
  CHECK(words_of(linear_tics(0.0, 9.0, 1)) == "0=0");
  CHECK(words_of(linear_tics(0.0, 1.0, 0)) == "0=0 1=1");
  CHECK(words_of(linear_tics(0.0, 0.3, 3)) == "0=0.0 0.1=0.1 0.2=0.2 0.3=0.3");
  CHECK(words_of(linear_tics(-0.02, 0.02, 4)) == "-0.02=-0.02 -0.01=-0.01 0=0.00 0.01=0.01 0.02=0.02");
  const auto chosen = [](Axis axis, int pixels, bool across) {
    choose_tics(axis, pixels, across);
    return axis.tics.size();
  };
  const Axis hundred{.low = 0.0, .high = 100.0};
  CHECK(chosen(hundred, 10'000, false) == 6);  // at most eight steps: twenties
  CHECK(chosen(hundred, 10'000, true) == 11);  // at most ten: tens
  CHECK(chosen(hundred, 10, false) == 3);      // at least two: fifties
  CHECK(chosen(hundred, 5 * 3 * hundred.font, false) == 6);
  CHECK(chosen(hundred, 5 * 3 * hundred.font - 1, false) == 3);
  Axis thousands{.tics = {{1000.0, "1000"}}};
  thousands.high = 2000.0;
  choose_tics(thousands, 100, false);
  CHECK(thousands.tics.front().label == "1,000");
}

TEST_CASE("Curves' labels that meet are one cluster, others stay") {
  CHECK(spread({}, 1.0, 0.0, 1.0).empty());
  CHECK(spread({0.5}, 3.0, 0.0, 1.0) == std::vector<double>{0.5});
  CHECK(spread({2.0}, 3.0, 0.0, 1.0) == std::vector<double>{1.0});
  CHECK(spread({1.0, 2.0, 7.0}, 1.0, 0.0, 10.0) == std::vector<double>{1.0, 2.0, 7.0});
  // 5 and 5 become 4 and 6, which meets 6.5: all three lie around (5 + 3 + 2.5) / 3 = 3.5.
  CHECK(spread({5.0, 5.0, 6.5}, 2.0, 0.0, 10.0) == std::vector<double>{3.5, 5.5, 7.5});
  CHECK(spread({0.5, 0.5}, 2.0, 0.0, 10.0) == std::vector<double>{0.0, 2.0});
}

}  // namespace foretrain::test
