
#include <filesystem>

#include "model/planning/plan_search.hpp"
#include "model/scenario/load/cases.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

TEST_CASE("No published plan is faster than the best that is found for its cluster") {
  // The search looks at every plan of its space, and Megatron-LM's hand-made plans (arXiv 2104.04473, table 1; tensor
  // 1 and 2, no pipeline) are among them. Best by simulation, of those that are best by estimate.
  const std::vector<Case> rows =
      read_cases(std::filesystem::path(FORETRAIN_SOURCE_DIR) / "scenarios/cases/cases_megatron_papers.csv");
  for (const Case& row : {rows[0], rows[1]}) {
    INFO(row.name);
    std::vector<PlanSpace> spaces;
    spaces.emplace_back(document_of(row), row.name, PlanDimensions::all());
    const PlanSearch search = search_plans(spaces, {PlanObjective{}}, 20);
    CHECK(search.counts.exceeded == 0);
    Seconds best = Seconds::infinity();
    for (const PlanCandidate& candidate : search.best) {
      best = std::min(best, predict(spaces.front().read(candidate.point), Fidelity::flows).time());
    }
    CHECK(best <= predict(scenario_of(row), Fidelity::flows).time() * (1.0 + 1e-9));
  }
}

}  // namespace foretrain::test
