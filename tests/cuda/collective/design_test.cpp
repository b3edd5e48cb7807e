// Which points are measured.
#include "validate/cuda/collective/design.hpp"

#include "tests/catch.hpp"

using namespace foretrain;
using namespace foretrain::gpu;

TEST_CASE("collective points are unique and complete", "[collective][design]") {
  const auto points = collective_points(8, false);
  std::set<std::string> names;
  for (const CollectivePoint& point : points) names.insert(record_of(point).name);
  CHECK(names.size() == points.size());
  // Three numbers of ranks, 16 sizes; all_gather, reduce_scatter and all_to_all lack those of less than 4 B per rank:
  // 8 B on 8 ranks and on 4.
  CHECK(points.size() == 3 * 7 * 16 - 3 * (1 + 1));
  // 8 B · 32^k below 4 GiB = 2^32 are k = 0 … 5, and 4 GiB itself; on 8 GPUs also on two of them.
  CHECK(collective_points(2, true).size() == 7 * 7);
  CHECK(collective_points(8, true).size() == 2 * 7 * 7 - 3);
  CHECK(collective_points(1, false).empty());
}

TEST_CASE("the first third of the points have every operation, and communicators are made once",
          "[collective][design]") {
  const auto points = collective_points(8, false);
  std::set<CollectiveOperation> first;
  for (int i = 0; i < 36; ++i) first.insert(points[static_cast<std::size_t>(i)].operation);
  CHECK(first.size() == 7);
  // For 8, 2 and 4 GPUs each.
  std::vector<int> ranks;
  for (const CollectivePoint& point : points) ranks.push_back(point.ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  CHECK(ranks == std::vector<int>{8, 2, 4});
}

TEST_CASE("points are those of nccl-tests, stated as a scenario would", "[collective][design]") {
  // 8 B and 32 B on 6 ranks: 2 and 8 fp32 numbers. Divided among the ranks, as nccl-tests does, none and one each are
  // left, and two numbers are left out of the second; an all-reduce has all of them.
  std::map<std::string, std::uint64_t> least;
  for (const CollectivePoint& point : collective_points(6, false)) {
    if (point.ranks != 6) continue;
    const Record record = record_of(point);
    std::uint64_t& elements = least[record.scenario.at("workload.collective.operation")];
    if (elements == 0 || point.elements < elements) elements = point.elements;
    CHECK(record.scenario.at("workload.collective.size") == std::to_string(4 * point.elements) + " B");
    CHECK(record.scenario.at("workload.collective.ranks") == "6");
  }
  CHECK(least.at("all_reduce") == 2);
  for (const char* divided : {"all_gather", "reduce_scatter", "all_to_all"}) CHECK(least.at(divided) == 6);
  CHECK(CollectivePoint{CollectiveOperation::all_gather, 6, 12}.block() == 2);
}

TEST_CASE("ranks spread over machines are counted", "[collective][design]") {
  const std::vector<std::string> machines{"a", "a", "b", "b", "b"};
  CHECK(spread_of(2, machines).nodes == 1);
  CHECK(spread_of(2, machines).ranks_per_node == 2);
  CHECK(spread_of(5, machines).nodes == 2);
  CHECK(spread_of(5, machines).ranks_per_node == 3);
}
