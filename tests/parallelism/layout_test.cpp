#include <numeric>
#include <set>

#include "model/parallelism/layout.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {
Plan plan_of(int data, int tensor, int pipeline, int context = 1) {
  Plan plan;
  plan.data = data;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.context = context;
  return plan;
}
}  // namespace

TEST_CASE("tensor-parallel ranks are neighbours, stages are farthest apart") {
  // rank = ((stage · data + d) · context + c) · tensor + t
  const RankLayout layout(plan_of(4, 2, 3));
  CHECK(layout.rank(0, 0, 0, 1) == 1);
  CHECK(layout.rank(0, 1, 0, 0) == 2);
  CHECK(layout.rank(1, 0, 0, 0) == 8);
  CHECK(layout.gpus() == 24);
}

TEST_CASE("gradient groups of all stages cover every rank exactly once") {
  const RankLayout layout(plan_of(4, 2, 3, 2));
  std::set<int> seen;
  for (int stage = 0; stage < 3; ++stage) {
    const auto groups = layout.groups(GroupKind::gradients, stage);
    CHECK(groups.size() == 2);  // one per tensor index
    for (const auto& group : groups) {
      CHECK(group.size() == 8);  // data × context
      for (const int rank : group) CHECK(seen.insert(rank).second);
    }
  }
  CHECK(seen.size() == 48);
}

TEST_CASE("tensor groups are consecutive ranks") {
  const auto groups = RankLayout(plan_of(8, 4, 1)).groups(GroupKind::tensor, 0);
  REQUIRE(groups.size() == 8);
  CHECK(groups[1] == std::vector<int>{4, 5, 6, 7});
}
