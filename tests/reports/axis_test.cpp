#include "reports/figure/axis.hpp"

#include "tests/catch.hpp"

namespace foretrain::test {

TEST_CASE("Numbers take the prefix that leaves one to three digits; seconds none above one") {
  CHECK(si_text(1e-5, "s") == "10 µs");
  CHECK(si_text(0.1, "s") == "100 ms");
  CHECK(si_text(5000.0, "s") == "5000 s");
  CHECK(si_text(2e6, "") == "2 M");
  CHECK(si_text(5000.0, "") == "5000");
  CHECK(si_text(0.05, "") == "0.05");
  CHECK(si_text(1e11, "B") == "100 GB");
}

TEST_CASE("Values grow by factors or by steps") {
  CHECK(grow_by_factors({1.0, 2.0, 4.0, 8.0}));
  CHECK(grow_by_factors({100.0, 1000.0}));
  CHECK_FALSE(grow_by_factors({1.0, 2.0, 3.0, 4.0}));
  CHECK_FALSE(grow_by_factors({2.0, 3.0}));
  CHECK_FALSE(grow_by_factors({0.0, 5.0}));
}

TEST_CASE("A unit that all labels have moves to the axis") {
  std::vector<std::string> same = {"1 MB", "25 MB"}, different = {"1 MB", "1 GB"};
  CHECK(common_unit(same) == "MB");
  CHECK(same == std::vector<std::string>{"1", "25"});
  CHECK(common_unit(different).empty());
  CHECK(different.back() == "1 GB");
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

TEST_CASE("Tics of a logarithmic axis are 1, 2 and 5 of each decade, and powers alone over more than three") {
  const auto labels = [](const std::vector<Tic>& tics) {
    std::string all;
    for (const Tic& tic : tics) all += tic.label + " ";
    return all;
  };
  CHECK(labels(logarithmic_tics(1.0, 100.0)) == "1 2 5 10 20 50 100 ");
  CHECK(labels(logarithmic_tics(3.0, 30.0)) == "5 10 20 ");
  CHECK(labels(logarithmic_tics(1e-6, 1.0, "s")) == "1 µs 10 µs 100 µs 1 ms 10 ms 100 ms 1 s ");
  CHECK(labels(binary_tics(1000.0, 5000.0)) == "1.00 KiB 2.00 KiB 4.00 KiB ");
}

TEST_CASE("A range that is left open has room around its values, from zero on where it goes upward") {
  Axis upward, across, decades{.logarithmic = true}, given{.low = 1.0, .high = 2.0};
  set_range(upward, {3.0, 10.0}, true);
  CHECK(upward.low == 0.0);
  CHECK(upward.high == Approx(10.7));
  set_range(across, {10.0, 60.0}, false);
  CHECK(across.low == Approx(9.0));
  CHECK(across.high == Approx(61.0));
  set_range(decades, {0.0, 10.0, 1000.0}, true);  // what has no logarithm is left out
  CHECK(decades.low == Approx(10.0 / 1.4));
  CHECK(decades.high == Approx(1400.0));
  choose_tics(decades, 400, false);
  CHECK(decades.tics.size() == 7);  // 10, 20, 50, …, 1000
  set_range(given, {0.0, 100.0}, true);
  CHECK(given.high == 2.0);
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

TEST_CASE("Tics of a linear axis are round numbers with commas between thousands") {
  const auto labels = [](const std::vector<Tic>& tics) {
    std::string all;
    for (const Tic& tic : tics) all += tic.label + " ";
    return all;
  };
  CHECK(labels(linear_tics(0.0, 3.2, 7)) == "0.0 0.5 1.0 1.5 2.0 2.5 3.0 ");
  CHECK(labels(linear_tics(1900.0, 12500.0, 5)) == "5,000 10,000 ");
  CHECK(labels(linear_tics(-10.0, 10.0, 4)) == "-10 -5 0 5 10 ");
  CHECK(labels(linear_tics(2.0, 2.0, 4)) == "2 ");
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

TEST_CASE("Labels of curves that do not collide stay where they are, and all keep their order") {
  CHECK(spread({0.1, 0.9, 0.5}, 0.2, 0.0, 1.0) == std::vector<double>{0.1, 0.9, 0.5});
  // In their own order where they do: the first is the upper one.
  const std::vector<double> places = spread({0.55, 0.5}, 0.2, 0.0, 1.0);
  CHECK(places[0] - places[1] == Approx(0.2));
}

TEST_CASE("Colliding labels move apart around their middle") {
  // Both want 0.5 and need 0.2 between them: 0.4 and 0.6.
  const std::vector<double> places = spread({0.5, 0.5}, 0.2, 0.0, 1.0);
  CHECK(places[0] == Approx(0.4));
  CHECK(places[1] == Approx(0.6));
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

}  // namespace foretrain::test
