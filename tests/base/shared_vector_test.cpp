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

TEST_CASE("Elements that are made later are made once, for all copies, when one is read") {
  int made = 0;
  const SharedVector<int> first(3, [&made] {
    ++made;
    return std::vector{1, 2, 3};
  });
  const SharedVector<int> second = first;
  CHECK(second.size() == 3);
  CHECK(made == 0);
  CHECK(second.back() == 3);
  CHECK(&first.front() == &second.front());
  CHECK(made == 1);
}

TEST_CASE("Elements for one use are made anew until they are read to stay") {
  int made = 0;
  const SharedVector<int> vector(1, [&made] { return std::vector{++made}; });
  const SharedVector<int> first = vector.once(), second = vector.once();
  CHECK(first.front() == 1);
  CHECK(second.front() == 2);
  CHECK(vector.front() == 3);
  const SharedVector<int> third = vector.once();
  CHECK(&third.front() == &vector.front());
}

TEST_CASE("Elements that could not be made are made when they are read again") {
  int asked = 0;
  const SharedVector<int> vector(2, [&asked] {
    if (++asked == 1) throw std::runtime_error("not yet");
    return std::vector{1, 2};
  });
  CHECK_THROWS(vector.front());
  CHECK(vector.size() == 2);
  CHECK(vector.back() == 2);
}
