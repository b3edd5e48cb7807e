#include "model/base/memo.hpp"

#include <string>

#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("A memo keeps what was used last, up to its weight") {
  Memo<std::string, int> memo(10);
  memo.add("a", 1, 4);
  memo.add("b", 2, 4);
  REQUIRE(memo.find("a") != nullptr);  // now used after b
  memo.add("c", 3, 4);                 // 12 together: b goes
  CHECK(memo.find("b") == nullptr);
  CHECK(*memo.find("a") == 1);
  CHECK(*memo.find("c") == 3);
  memo.add("d", 4, 100);  // too heavy for any other beside it
  CHECK(memo.size() == 1);
  CHECK(*memo.find("d") == 4);
  memo.add("e", 5, 1);
  CHECK(memo.size() == 1);
  CHECK(*memo.find("e") == 5);
}
