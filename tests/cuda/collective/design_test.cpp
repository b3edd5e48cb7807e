// Which points are measured.
#include "validate/cuda/collective/design.hpp"

#include <set>

#include "model/base/words.hpp"
#include "tests/catch.hpp"
#include "validate/cuda/collective/ladder.hpp"
#include "validate/cuda/collective/peer_design.hpp"

using namespace foretrain;
using namespace foretrain::gpu;

TEST_CASE("ladders begin and end where they are told", "[collective][design]") {
  CHECK(size_ladder(8, 64, 2) == std::vector<std::uint64_t>{8, 16, 32, 64});
  CHECK(size_ladder(8, 100, 8) == std::vector<std::uint64_t>{8, 64, 100});
  CHECK(size_ladder(8, 8, 2) == std::vector<std::uint64_t>{8});
  CHECK(size_ladder(8, 1ULL << 32, 2).size() == 30);  // 2^3 to 2^32
  CHECK_THROWS_AS(size_ladder(8, 64, 1), std::invalid_argument);
  CHECK_THROWS_AS(size_ladder(0, 64, 2), std::invalid_argument);
}

TEST_CASE("numbers of GPUs are all of them and the powers of two below", "[collective][design]") {
  CHECK(rank_counts(8) == std::vector<int>{8, 2, 4});
  CHECK(rank_counts(6) == std::vector<int>{6, 2, 4});
  CHECK(rank_counts(2) == std::vector<int>{2});
  CHECK(rank_counts(1).empty());
}

TEST_CASE("a batch is as long as it should be, within 1 and the most", "[collective][design]") {
  CHECK(batch_of(0.005, 0.02) == 4);
  CHECK(batch_of(0.006, 0.02) == 4);  // rounded up
  CHECK(batch_of(1.0, 0.02) == 1);
  CHECK(batch_of(1e-6, 0.02) == 20);   // nccl-tests' default
  CHECK(batch_of(0.0, 0.02, 7) == 7);  // too short for the clock
}

TEST_CASE("collective points are unique and complete", "[collective][design]") {
  const auto points = collective_points(8, false);
  std::set<std::string> names;
  for (const CollectivePoint& point : points) names.insert(record_of(point).name);
  CHECK(names.size() == points.size());
  // Three numbers of ranks, 16 sizes; all_gather, reduce_scatter and all_to_all lack those of less than 4 B per rank:
  // 8 B on 8 ranks and on 4.
  CHECK(points.size() == 3 * 7 * 16 - 3 * (1 + 1));
  CHECK(points.front().ranks == 8);
  // 8 B · 32^k below 4 GiB = 2^32 are k = 0 … 5, and 4 GiB itself; on 8 GPUs also on two of them.
  const auto quick = collective_points(2, true);
  CHECK(quick.size() == 7 * 7);
  CHECK(collective_points(8, true).size() == 2 * 7 * 7 - 3);
}

TEST_CASE("what the time does for is what steps rest on most, and something of everything", "[collective][design]") {
  // Of the 110 points on 8 GPUs the first third: all-reduces, all-gathers and reduce-scatters are three of seven
  // operations, and of twelve parts of eighteen by their value; sizes from a megabyte on are seven of sixteen.
  const auto points = collective_points(8, false);
  int common = 0, large = 0;
  for (std::size_t i = 0; i < 36; ++i) {
    const CollectiveOperation operation = points[i].operation;
    common += operation == CollectiveOperation::all_reduce || operation == CollectiveOperation::all_gather ||
                      operation == CollectiveOperation::reduce_scatter
                  ? 1
                  : 0;
    large += points[i].bytes() >= 1 << 20 ? 1 : 0;
  }
  CHECK(common >= 18);
  CHECK(common < 36);
  CHECK(large >= 18);
  CHECK(large < 36);
  // Communicators are made once for 8, 2 and 4 GPUs each.
  int changes = 0;
  for (std::size_t i = 1; i < points.size(); ++i) changes += points[i].ranks != points[i - 1].ranks ? 1 : 0;
  CHECK(changes == 2);
}

TEST_CASE("a record states its point as a scenario would", "[collective][design]") {
  const CollectivePoint point{CollectiveOperation::all_gather, 4, extent_of(CollectiveOperation::all_gather, 4, 1000)};
  const Record record = record_of(point);
  CHECK(record.scenario.at("workload.collective.operation") == "all_gather");
  CHECK(record.scenario.at("workload.collective.size") == "4000 B");
  CHECK(record.scenario.at("workload.collective.ranks") == "4");
  CHECK(record.unit == "s");
}

TEST_CASE("extents are those of nccl-tests", "[collective][design]") {
  // 1,001 elements on 4 ranks: 250 each, one is left out where the buffer is divided.
  const Extent gather = extent_of(CollectiveOperation::all_gather, 4, 1001);
  CHECK(gather.sent == 250);
  CHECK(gather.received == 1000);
  CHECK(gather.total == 1000);
  const Extent scatter = extent_of(CollectiveOperation::reduce_scatter, 4, 1001);
  CHECK(scatter.sent == 1000);
  CHECK(scatter.received == 250);
  const Extent exchange = extent_of(CollectiveOperation::all_to_all, 4, 1001);
  CHECK(exchange.sent == 1000);
  CHECK(exchange.received == 1000);
  CHECK(exchange.block == 250);
  const Extent reduce = extent_of(CollectiveOperation::all_reduce, 4, 1001);
  CHECK(reduce.total == 1001);
  CHECK(extent_of(CollectiveOperation::all_gather, 4, 3).total == 0);
  CHECK_THROWS_AS(extent_of(CollectiveOperation::all_reduce, 1, 8), std::invalid_argument);
}

TEST_CASE("ranks spread over machines are counted", "[collective][design]") {
  const std::vector<std::string> hosts{"a", "a", "b", "b", "b"};
  CHECK(spread_of(2, hosts).nodes == 1);
  CHECK(spread_of(2, hosts).ranks_per_node == 2);
  CHECK(spread_of(5, hosts).nodes == 2);
  CHECK(spread_of(5, hosts).ranks_per_node == 3);
}

TEST_CASE("peer copies: quick takes one pair per kind of link, full takes all", "[collective][design]") {
  const std::vector<PeerLink> links{{0, 1, "near", true}, {0, 2, "far", false}, {1, 2, "near", true}};
  const auto quick = peer_points(links, true);
  for (const PeerPoint& point : quick) {
    const bool first = point.source + point.destination == 1;
    const bool second = point.source + point.destination == 2;
    CHECK((first || second));
    if (second) CHECK_FALSE(point.access);  // GPUs 0 and 2 have none
  }
  // 4 KiB, 256 KiB, 16 MiB, 1 GiB: two ways and both at once; GPUs 0 and 1 with and without access, 0 and 2 without.
  CHECK(quick.size() == 3 * (3 * 4));

  const auto full = peer_points(links, false);
  // 4^k from 4 KiB to 1 GiB are 10 sizes. As above for the first of each kind; of the other near pair the largest copy
  // each way, with access.
  CHECK(full.size() == 3 * (3 * 10) + 2);
  CHECK(full.back().access);
  std::set<std::string> names;
  for (const PeerPoint& point : full) names.insert(record_of(point).name);
  CHECK(names.size() == full.size());
}
