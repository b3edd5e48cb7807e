#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "model/base/error.hpp"
#include "model/job/job.hpp"
#include "model/planning/plan_search.hpp"
#include "model/scenario/cases.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

struct Beside {
  Seconds published;
  bool fits = true;
  PlanCandidate best;
};

/// The estimate of a row's plan and of the best on the same cluster; nothing where the row is no training, or where its
/// plan or cluster is not searched.
std::optional<Beside> beside_best(const Case& row) {
  try {
    const Scenario scenario = scenario_of(row);
    if (!std::holds_alternative<TrainWorkload>(scenario.workload)) return std::nullopt;
    std::vector<PlanSpace> spaces;
    spaces.emplace_back(document_of(row), row.name, PlanDimensions::all());
    const PlanSearch search = search_plans(spaces, {PlanObjective{}}, 1);
    CHECK(search.counts.exceeded == 0);
    if (search.best.empty()) return std::nullopt;
    const Result result = estimate(scenario);
    return Beside{result.time(), result.train->memory.fits(), search.best.front()};
  } catch (const ScenarioError&) {
  } catch (const UsageError&) {
  }
  return std::nullopt;
}

std::vector<Case> rows_of(const std::string& table) {
  return read_cases(std::filesystem::path(FORETRAIN_SOURCE_DIR) / "scenarios/cases" / (table + ".csv"));
}

}  // namespace

TEST_CASE("No published plan is faster than the best that is found for its cluster") {
  // The search looks at every plan of its space, and Megatron-LM's hand-made plans (arXiv 2104.04473, table 1; tensor
  // 1 and 2, no pipeline) are among them.
  const std::vector<Case> rows = rows_of("cases_megatron_papers");
  for (const std::size_t row : {0, 1}) {
    INFO(rows[row].name);
    const std::optional<Beside> both = beside_best(rows[row]);
    REQUIRE(both);
    INFO(describe(both->best.point));
    CHECK(both->best.step <= both->published * (1.0 + 1e-9));
  }
}

TEST_CASE("Published plans of all tables beside the best of their clusters", "[.published]") {
  int compared = 0, slower = 0;
  for (const auto& file : std::filesystem::directory_iterator(FORETRAIN_SOURCE_DIR "/scenarios/cases")) {
    for (const Case& row : rows_of(file.path().stem())) {
      const std::optional<Beside> both = beside_best(row);
      if (!both) continue;
      ++compared;
      const double share = both->published / both->best.step;
      if (share < 1.0 - 1e-9 && both->fits) ++slower;
      std::cout << fmt::format("{:40} published {:8.4f} s{} best {:8.4f} s, {:.3f} times as fast: {}\n", row.name,
                               both->published.value(), both->fits ? "," : " (does not fit),", both->best.step.value(),
                               share, describe(both->best.point))
                << std::flush;
    }
  }
  std::cout << fmt::format("{} rows, in {} of them the published plan is faster\n", compared, slower);
}

}  // namespace foretrain::test
