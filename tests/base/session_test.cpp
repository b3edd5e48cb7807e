#include "model/base/session.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Numbers of which every ten have one hash.
struct Number {
  using Value = const std::string;
  int number;
  bool operator==(const Number&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return static_cast<std::uint64_t>(number / 10); }
  [[nodiscard]] std::size_t bytes(const std::string& text) const { return text.size(); }
};

/// The same numbers, of another kind.
struct Other {
  using Value = int;
  int number;
  bool operator==(const Other&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return static_cast<std::uint64_t>(number / 10); }
};

struct Counter {
  int count = 0;
};

}  // namespace

TEST_CASE("A session keeps what was used last, of all kinds together, up to its budget") {
  Session kept(10);
  kept.keep(Number{1}, "aaaa");
  kept.keep(Number{2}, "bbbb");
  REQUIRE(kept.find(Number{1}) != nullptr);  // now used after 2
  kept.keep(Number{3}, "cccc");              // 12 bytes together: 2 goes
  CHECK(kept.find(Number{2}) == nullptr);
  CHECK(*kept.find(Number{1}) == "aaaa");
  CHECK(*kept.find(Number{3}) == "cccc");
  const auto held = kept.find(Number{3});
  kept.keep(Other{1}, 4);  // what owns nothing beyond itself weighs what it is: more than these are left
  CHECK(kept.find(Number{3}) == nullptr);
  CHECK(*held == "cccc");  // what somebody holds lives on
  CHECK(kept.size() == 1);
  CHECK(*kept.find(Other{1}) == 4);
  kept.keep(Number{4}, std::string(100, 'd'));  // heavier than the budget, and there until the next comes
  CHECK(kept.size() == 1);
  CHECK(kept.find(Number{4}) != nullptr);
  kept.keep(Number{5}, "e");
  CHECK(kept.size() == 1);
  CHECK(kept.bytes() == 1);
}

TEST_CASE("Keys of one hash, and of one number and two kinds, are distinguished") {
  Session kept;
  kept.keep(Number{1}, "one");
  kept.keep(Number{2}, "two");
  kept.keep(Other{1}, 100);
  CHECK(*kept.find(Number{1}) == "one");
  CHECK(*kept.find(Number{2}) == "two");
  CHECK(kept.find(Number{3}) == nullptr);
  CHECK(*kept.find(Other{1}) == 100);
  CHECK(kept.find(Other{2}) == nullptr);
}

TEST_CASE("What is known is not made again; what is kept anew takes the place of the old") {
  Session kept;
  int made = 0;
  const auto make = [&made] { return std::to_string(++made); };
  CHECK(*kept.known(Number{7}, make) == "1");
  CHECK(*kept.known(Number{7}, make) == "1");
  kept.keep(Number{7}, "seven");
  CHECK(*kept.known(Number{7}, make) == "seven");
  CHECK(kept.size() == 1);
  CHECK(kept.bytes() == 5);
  kept.clear();
  CHECK(kept.bytes() == 0);
  CHECK(*kept.known(Number{7}, make) == "2");
}

TEST_CASE("A thread's session is that of the innermost scope") {
  Session outer, inner;
  {
    const SessionScope outside(outer);
    session().part<Counter>().count = 1;
    {
      const SessionScope inside(inner);
      CHECK(session().part_if_there<Counter>() == nullptr);
      CHECK(session().part<Counter>().count == 0);
    }
    CHECK(session().part<Counter>().count == 1);
  }
  CHECK(&session() != &outer);
}
