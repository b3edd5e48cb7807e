#include "model/collectives/rank_groups.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

using Groups = std::vector<std::vector<int>>;

namespace {
Groups all(const RankGroups& groups) {
  Groups result;
  for (const std::vector<int>& group : groups) result.push_back(group);
  return result;
}
}  // namespace

TEST_CASE("groups are families of a first one and its shifts") {
  // Two pairs, a pair that lies otherwise, and two more like that one.
  const RankGroups groups{{0, 1}, {4, 5}, {8, 10}, {9, 11}, {2, 4}};
  REQUIRE(groups.families().size() == 2);
  CHECK(groups.families()[0] == RankGroups::Family{{0, 1}, {0, 4}, 0});
  CHECK(groups.families()[1] == RankGroups::Family{{8, 10}, {0, 1, -6}, 2});
  CHECK(groups.size() == 5);
  CHECK(groups.front() == std::vector<int>{0, 1});
  CHECK(groups[4] == std::vector<int>{2, 4});
}

TEST_CASE("random groups come back as they are, and are equal to no others") {
  std::mt19937 random(1);
  const auto number = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  for (int run = 0; run < 200; ++run) {
    Groups groups(static_cast<std::size_t>(1 + number(5)));
    for (std::vector<int>& group : groups) {
      group.resize(static_cast<std::size_t>(1 + number(2)));
      for (int& rank : group) rank = number(3);
    }
    const RankGroups families(groups);
    CHECK(all(families) == groups);
    CHECK(families.size() == groups.size());
    for (std::size_t i = 0; i < groups.size(); ++i) CHECK(families[i] == groups[i]);
    Groups others = groups;
    others[static_cast<std::size_t>(number(static_cast<int>(groups.size()) - 1))].front() += number(1);
    CHECK((families == RankGroups(others)) == (groups == others));
  }
}

TEST_CASE("groups that are others shifted say by how much, all by the same") {
  const RankGroups groups{{0, 1}, {4, 5}, {8, 10}};
  CHECK(RankGroups{{16, 17}, {20, 21}, {24, 26}}.shift_from(groups) == 16);
  CHECK(groups.shift_from(groups) == 0);
  CHECK_FALSE(RankGroups{{16, 17}, {20, 21}, {25, 27}}.shift_from(groups));
  CHECK_FALSE(RankGroups{{16, 17}, {20, 21}}.shift_from(groups));
  CHECK_FALSE(RankGroups{}.shift_from(RankGroups{}));
}
