#include "validate/fit/minimise.hpp"

#include <cmath>

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
  CHECK(calls <= 25);
}
