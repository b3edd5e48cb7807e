#include "validate/fit/nelder_mead.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("The minimum of a bowl is its bottom") {
  // (x - 3)² + 10 (y - 0.5)² + 1 is smallest, 1, at (3, 0.5); the start is far off and the bounds are wide.
  const auto bowl = [](const std::vector<double>& v) {
    return (v[0] - 3.0) * (v[0] - 3.0) + 10.0 * (v[1] - 0.5) * (v[1] - 0.5) + 1.0;
  };
  const Minimum found = minimise(bowl, {{20.0, 0.0, 100.0}, {0.01, 0.0, 10.0}}, 2000);
  CHECK(found.at[0] == Approx(3.0).epsilon(0.02));
  CHECK(found.at[1] == Approx(0.5).epsilon(0.02));
  CHECK(found.value == Approx(1.0).epsilon(1e-3));
}

TEST_CASE("Kinks do not stop the search, and the same search finds the same point") {
  // |x - 2| + |y - 2x| + 1 has its minimum at (2, 4), where neither term has a derivative.
  const auto roof = [](const std::vector<double>& v) {
    return std::abs(v[0] - 2.0) + std::abs(v[1] - 2.0 * v[0]) + 1.0;
  };
  const std::vector<SearchVariable> variables = {{1.0, 0.1, 50.0}, {1.0, 0.1, 50.0}};
  const Minimum found = minimise(roof, variables, 4000);
  CHECK(found.at[0] == Approx(2.0).epsilon(0.02));
  CHECK(found.at[1] == Approx(4.0).epsilon(0.02));
  CHECK(minimise(roof, variables, 4000).at == found.at);
}

TEST_CASE("Bounds are kept: the best that they allow lies on them") {
  // (x - 5)² falls up to the bound 2.
  const Minimum found =
      minimise([](const std::vector<double>& v) { return (v[0] - 5.0) * (v[0] - 5.0); }, {{1.0, 0.5, 2.0}}, 500);
  CHECK(found.at[0] == Approx(2.0).epsilon(1e-3));
  CHECK(found.at[0] <= 2.0);
}

TEST_CASE("Nothing to vary is no error, and a budget is kept") {
  CHECK(minimise([](const std::vector<double>&) { return 7.0; }, {}, 100).value == 7.0);
  int calls = 0;
  minimise(
      [&](const std::vector<double>& v) {
        ++calls;
        return v[0] * v[0] + v[1] * v[1];
      },
      {{9.0, 0.0, 10.0}, {9.0, 0.0, 10.0}}, 25);
  CHECK(calls <= 25 + 4);  // the step under way is finished
}

namespace {

/// The first places at which a search asks for this function's values.
std::vector<std::vector<double>> asked_first(std::size_t number, const std::vector<SearchVariable>& variables,
                                             const std::function<double(const std::vector<double>&)>& function) {
  std::vector<std::vector<double>> asked;
  minimise(
      [&](const std::vector<double>& at) {
        asked.push_back(at);
        return function(at);
      },
      variables, static_cast<int>(number));
  asked.resize(std::min(asked.size(), number));
  return asked;
}

}  // namespace

TEST_CASE("The first simplex is a quarter of each value wide, or of two hundredths of its range, inside the bounds") {
  const auto second_of = [](double start) {
    return asked_first(2, {{start, 0.0, 100.0}}, [](const std::vector<double>& v) { return v[0]; })[1][0];
  };
  CHECK(second_of(4.0) == 5.0);
  CHECK(second_of(1.0) == 1.5);
  CHECK(second_of(0.0) == 0.5);
  const auto of_both_signs = [](const std::vector<double>& v) { return v[0]; };
  CHECK(asked_first(2, {{0.0, -100.0, 100.0}}, of_both_signs)[1][0] == 1.0);  // a quarter of 0.02 of 200
  CHECK(second_of(80.0) == 100.0);
  CHECK(second_of(81.0) == 60.75);  // 101.25 is outside
}

TEST_CASE("A search mirrors its worst place, goes twice as far where that is best, and half where it is not") {
  // Downhill all the way: 3 mirrors 5, 2 is twice as far; from {2, 4} 0, which the bound holds.
  CHECK(asked_first(6, {{4.0, 0.0, 100.0}}, [](const std::vector<double>& v) { return v[0] + 1.0; }) ==
        std::vector<std::vector<double>>{{4.0}, {5.0}, {3.0}, {2.0}, {0.0}, {0.0}});
  // Up on both sides: half way back to the worst.
  CHECK(asked_first(6, {{4.0, 0.0, 100.0}}, [](const std::vector<double>& v) { return std::abs(v[0] - 4.0) + 1.0; }) ==
        std::vector<std::vector<double>>{{4.0}, {5.0}, {3.0}, {4.5}, {3.5}, {4.25}});
  // The mirror better than the worst alone: half way to it. Values 0 at 4, 2 at 5, 1 at 3.
  CHECK(asked_first(4, {{4.0, 0.0, 100.0}}, [](const std::vector<double>& v) {
          return v[0] > 4.0 ? 2.0 * v[0] - 7.0 : 5.0 - v[0];
        }) == std::vector<std::vector<double>>{{4.0}, {5.0}, {3.0}, {3.5}});
  // Nowhere better than the start: all shrink to it by half.
  const std::vector<double> start = {4.0, 4.0};
  CHECK(asked_first(7, {{4.0, 0.0, 100.0}, {4.0, 0.0, 100.0}},
                    [&](const std::vector<double>& v) { return v == start ? 1.0 : 2.0; }) ==
        std::vector<std::vector<double>>{
            {4.0, 4.0}, {5.0, 4.0}, {4.0, 5.0}, {5.0, 3.0}, {4.25, 4.5}, {4.5, 4.0}, {4.0, 4.5}});
}
