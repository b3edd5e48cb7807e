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

TEST_CASE("A shared vector without elements can be read and grow") {
  SharedVector<int> none;
  CHECK(none.empty());
  CHECK(none.begin() == none.end());
  none.push_back(4);
  CHECK(none.size() == 1);
  CHECK(none.back() == 4);
}
