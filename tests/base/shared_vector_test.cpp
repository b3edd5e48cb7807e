#include "model/base/shared_vector.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("Copies share their elements until one is changed") {
  const SharedVector<int> first{1, 2, 3};
  SharedVector<int> second = first;
  const SharedVector<int>& read = second;
  CHECK(&read.front() == &first.front());
  second[0] = 7;
  CHECK(first[0] == 1);
  CHECK(read[0] == 7);
  CHECK(&read.front() != &first.front());
}
