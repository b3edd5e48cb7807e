// Every schedule of the table is executed symbolically, and the checker itself is shown to find what is wrong.
#include <fmt/ranges.h>

#include "tests/catch.hpp"
#include "tests/collectives/rows.hpp"
#include "tests/collectives/schedule_checker.hpp"

using namespace foretrain;
using foretrain::test::check_schedule;

namespace {

/// Shapes to try: servers, ranks per node or group, levels.
std::vector<ScheduleShape> shapes_to_try(SyncAlgorithm algorithm, int ranks) {
  std::vector<ScheduleShape> shapes;
  const auto divisors = [](int number) {
    std::vector<int> result;
    for (int divisor = 1; divisor <= number; ++divisor) {
      if (number % divisor == 0) result.push_back(divisor);
    }
    return result;
  };
  switch (algorithm) {
    case SyncAlgorithm::parameter_server:
      return {1, 2, 3, ranks};
    case SyncAlgorithm::hierarchical_parameter_server:
      for (const int per_node : divisors(ranks)) {
        for (const int servers : {1, 2, 3, ranks}) {
          shapes.emplace_back(servers);
          shapes.back().ranks_per_node = per_node;
        }
      }
      return shapes;
    case SyncAlgorithm::hierarchical:
      for (const int inner : divisors(ranks)) {
        shapes.emplace_back(inner);                         // two levels
        for (const int middle : divisors(ranks / inner)) {  // three
          shapes.emplace_back(1);
          shapes.back().levels = {inner, middle};
        }
      }
      if (ranks % 8 == 0) {  // four
        shapes.emplace_back(1);
        shapes.back().levels = {2, 2, 2};
      }
      return shapes;
    default:
      return {1};
  }
}

std::string describe(const AlgorithmRow& row, int ranks, const ScheduleShape& shape) {
  return fmt::format("{} {}, {} ranks, parts {}, levels {}, {} a node", name(row.algorithm), name(row.operation), ranks,
                     shape.parts, fmt::join(shape.levels, "x"), shape.ranks_per_node);
}

/// A correct ring of three ranks, with phase 1 replaced.
Schedule ring_with_phase_1(Phase replacement) {
  Schedule schedule = ring_algorithm.schedule(CollectiveOperation::all_reduce, 3, 1);
  schedule.phase = [original = schedule.phase, replacement](int index) {
    return index == 1 ? replacement : original(index);
  };
  return schedule;
}

/// Messages between ranks in a phase, when all chunks are equally large.
std::map<std::pair<int, int>, int> amounts(const Phase& phase) {
  std::map<std::pair<int, int>, int> result;
  for (const Transfer& transfer : phase) result[{transfer.source, transfer.destination}] += transfer.chunks;
  return result;
}

}  // namespace

TEST_CASE("every schedule leaves every rank with every contribution exactly once, for 1 to 33 ranks", "[exhaustive]") {
  for (const AlgorithmRow& row : algorithm_table()) {
    for (int ranks = 1; ranks <= 33; ++ranks) {
      for (const ScheduleShape& shape : shapes_to_try(row.algorithm, ranks)) {
        const std::string problem = check_schedule(row.build(ranks, shape), row.operation);
        if (!problem.empty()) FAIL_CHECK(describe(row, ranks, shape) << ": " << problem);
      }
    }
  }
}

TEST_CASE("the phases of a run move the same amounts between the same participants") {
  for (const AlgorithmRow& row : algorithm_table()) {
    for (const int ranks : {2, 3, 8, 12, 17}) {
      for (const ScheduleShape& shape : shapes_to_try(row.algorithm, ranks)) {
        INFO(describe(row, ranks, shape));
        const Schedule schedule = row.build(ranks, shape);
        for (int phase = 0; phase < schedule.phases;) {
          const auto [run, representative] = schedule.phase_run(phase);
          REQUIRE(run >= 1);
          REQUIRE(phase + run <= schedule.phases);
          REQUIRE(representative == phase);  // few phases are never taken for each other
          const auto expected = amounts(schedule.phase(phase));
          for (int other = phase + 1; other < phase + run; ++other) {
            if (amounts(schedule.phase(other)) != expected) FAIL("phase " << other << " differs from " << phase);
          }
          phase += run;
        }
      }
    }
  }
}

TEST_CASE("phase counts are those of the literature") {
  // Ring: n-1 steps of reduce-scatter and n-1 of all-gather. Halving-doubling of 8: 3 + 3, of 9: one more before and
  // after. A binary heap of 7 ranks has two levels of edges, up and down.
  CHECK(ring_algorithm.schedule(CollectiveOperation::all_reduce, 8, 1).phases == 14);
  CHECK(halving_doubling_algorithm.schedule(CollectiveOperation::all_reduce, 8, 1).phases == 6);
  CHECK(halving_doubling_algorithm.schedule(CollectiveOperation::all_reduce, 9, 1).phases == 8);
  CHECK(tree_algorithm.schedule(CollectiveOperation::all_reduce, 7, 1).phases == 4);
  CHECK(naive_algorithm.schedule(CollectiveOperation::all_reduce, 5, 1).phases == 2);
  // Four nodes of eight: 7 hops inside, 2·3 between, 7 inside.
  CHECK(hierarchical_algorithm.schedule(CollectiveOperation::all_reduce, 32, 8).phases == 20);
  CHECK(ring_algorithm.schedule(CollectiveOperation::all_reduce, 1, 1).phases == 0);
}

TEST_CASE("in the double tree no rank is an inner node of both trees") {
  // Inner nodes are those that send copies down; the first tree uses the first half of the chunks.
  for (int ranks = 2; ranks <= 33; ++ranks) {
    const Schedule schedule = double_tree_algorithm.schedule(CollectiveOperation::all_reduce, ranks, 1);
    std::vector<int> inner(ranks, 0);
    for (int phase = 0; phase < schedule.phases; ++phase) {
      for (const Transfer& transfer : schedule.phase(phase)) {
        if (transfer.kind != Transfer::Kind::copy) continue;
        inner[transfer.source] |= transfer.first_chunk < schedule.chunks / 2 ? 1 : 2;
      }
    }
    INFO(ranks << " ranks");
    // With an odd number one rank has to serve twice: the shifted tree's root is the only exception.
    CHECK(std::ranges::count(inner, 3) <= ranks % 2);
  }
}

TEST_CASE("the checker finds hazards inside a phase") {
  // Recursive doubling in place: both partners read what the other one is writing.
  Schedule exchange = naive_algorithm.schedule(CollectiveOperation::all_reduce, 2, 1);
  exchange.phases = 1;
  exchange.phase = [](int) {
    return Phase{{0, 1, 0, 1, Transfer::Kind::reduce}, {1, 0, 0, 1, Transfer::Kind::reduce}};
  };
  CHECK(check_schedule(exchange, CollectiveOperation::all_reduce) ==
        "phase 0: participant 0 chunk 0 is read while it is written");

  Schedule overwrite = naive_algorithm.schedule(CollectiveOperation::all_reduce, 3, 1);
  overwrite.phase = [](int) { return Phase{{1, 0, 0, 1, Transfer::Kind::copy}, {2, 0, 0, 1, Transfer::Kind::copy}}; };
  CHECK(check_schedule(overwrite, CollectiveOperation::all_reduce) ==
        "phase 0: participant 0 chunk 0 is written twice");
}

TEST_CASE("the checker finds transfers that leave the message or the group") {
  for (const Transfer& wrong : {Transfer{0, 3, 0, 1, Transfer::Kind::copy}, Transfer{-1, 0, 0, 1, Transfer::Kind::copy},
                                Transfer{0, 1, 2, 2, Transfer::Kind::copy}, Transfer{1, 1, 0, 1, Transfer::Kind::copy},
                                Transfer{0, 1, 0, 0, Transfer::Kind::copy}}) {
    CHECK_THAT(check_schedule(ring_with_phase_1({wrong}), CollectiveOperation::all_reduce),
               Catch::Contains("out of range"));
  }
}

TEST_CASE("the checker finds what is wrong in the schedules that have levels, servers and pieces") {
  const auto without = [](Schedule schedule, int phase, std::size_t transfer) {
    schedule.phase = [original = schedule.phase, phase, transfer](int index) {
      Phase transfers = original(index);
      if (index == phase) transfers.erase(transfers.begin() + static_cast<std::ptrdiff_t>(transfer));
      return transfers;
    };
    return schedule;
  };
  ScheduleShape three_levels(1);
  three_levels.levels = {2, 2};
  using enum CollectiveOperation;
  // Every transfer of a schedule is needed: without any one of them, some rank misses a contribution.
  const std::pair<Schedule, CollectiveOperation> schedules[] = {
      {hierarchical_algorithm.schedule(CollectiveOperation::all_reduce, 8, three_levels), all_reduce},
      {hierarchical_algorithm.schedule(CollectiveOperation::reduce_scatter, 8, three_levels), reduce_scatter},
      {hierarchical_algorithm.schedule(CollectiveOperation::all_gather, 8, three_levels), all_gather},
      {hierarchical_algorithm.schedule(CollectiveOperation::all_to_all, 8, three_levels), all_to_all},
      {bidirectional_ring_algorithm.schedule(CollectiveOperation::all_reduce, 5, 1), all_reduce},
      {ring_algorithm.schedule(CollectiveOperation::broadcast, 4, 1), broadcast},
      {hierarchical_parameter_server_algorithm.schedule(CollectiveOperation::all_reduce, 6, 2), all_reduce},
      {pairwise_algorithm.schedule(CollectiveOperation::all_to_all, 6, 1), all_to_all},
      {halving_doubling_algorithm.schedule(CollectiveOperation::all_reduce, 7, 1), all_reduce},
      {double_tree_algorithm.schedule(CollectiveOperation::all_reduce, 6, 1), all_reduce},
      {tree_algorithm.schedule(CollectiveOperation::reduce, 6, 1), reduce},
      {naive_algorithm.schedule(CollectiveOperation::all_reduce, 4, 1), all_reduce}};
  for (const auto& [schedule, operation] : schedules) {
    REQUIRE(check_schedule(schedule, operation) == "");
    for (int phase = 0; phase < schedule.phases; ++phase) {
      for (std::size_t transfer = 0; transfer < schedule.phase(phase).size(); ++transfer) {
        if (check_schedule(without(schedule, phase, transfer), operation).empty()) {
          FAIL("operation " << static_cast<int>(operation) << ": transfer " << transfer << " of phase " << phase);
        }
      }
    }
  }
  // A stride that leads beyond the message.
  CHECK_THAT(check_schedule(ring_with_phase_1({{0, 1, 1, 2, Transfer::Kind::copy, 2}}), all_reduce),
             Catch::Contains("out of range"));
  CHECK_THAT(check_schedule(ring_with_phase_1({{0, 1, 1, 1, Transfer::Kind::copy, 0}}), all_reduce),
             Catch::Contains("out of range"));
}

TEST_CASE("transfers of strided chunks are as large as their chunks") {
  for (const double bytes : {0.0, 1.0, 5.0, 11.0, 1000.0, 1003.0}) {
    for (const int chunks : {1, 2, 6, 7, 12}) {
      for (int first = 0; first < chunks; ++first) {
        for (const int stride : {1, 2, 3, 5}) {
          for (int count = 1; first + (count - 1) * stride < chunks; ++count) {
            Bytes expected(0.0);
            for (int i = 0; i < count; ++i) expected += chunk_range_size(Bytes(bytes), chunks, first + i * stride, 1);
            const Transfer transfer{0, 1, first, count, Transfer::Kind::copy, stride};
            if (transfer_size(Bytes(bytes), chunks, transfer).value() != expected.value()) {
              FAIL(bytes << " B in " << chunks << " chunks: " << first << " + " << count << " x " << stride);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("chunks are whole bytes, nearly equal, and add up to the message") {
  // 10 bytes in 4 chunks: 3 + 3 + 2 + 2. 2 bytes: 1 + 1 + 0 + 0; nothing stays nothing.
  for (const auto& [size, first, count, expected] : {std::tuple(10.0_B, 0, 1, 3.0),
                                                     {10.0_B, 2, 1, 2.0},
                                                     {10.0_B, 1, 2, 5.0},
                                                     {10.0_B, 0, 4, 10.0},
                                                     {2.0_B, 1, 1, 1.0},
                                                     {2.0_B, 2, 1, 0.0},
                                                     {0.0_B, 0, 1, 0.0}}) {
    CHECK(chunk_range_size(size, 4, first, count).value() == expected);
  }
}
