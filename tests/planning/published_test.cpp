
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "model/base/error.hpp"
#include "model/planning/plan_search.hpp"
#include "model/scenario/load/cases.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

/// By simulation; the best of those that are best by estimate.
struct Best {
  Seconds step = Seconds::infinity();
  PlanPoint point;
};
struct Beside {
  Seconds published;
  bool fits = true;
  Best best;
};

/// What a search starts from, without the values that it chooses.
std::string text_of(const YamlNode& node) {
  std::string text = node.scalar;
  for (const YamlNode& item : node.items) text += "[" + text_of(item) + "]";
  for (const YamlEntry& entry : node.entries) text += "{" + entry.key + ":" + text_of(entry.value) + "}";
  return text;
}

Best best_plan(const std::vector<PlanSpace>& spaces) {
  constexpr std::size_t simulated = 20;
  const PlanSearch search = search_plans(spaces, {PlanObjective{}}, simulated);
  CHECK(search.counts.exceeded == 0);
  Best best;
  for (const PlanCandidate& candidate : search.best) {
    const Seconds step = predict(spaces.front().read(candidate.point), Fidelity::flows).time();
    if (step < best.step) best = {step, candidate.point};
  }
  return best;
}

/// The row's plan and the best on the same cluster; nothing where the row is no training, or where its plan or cluster
/// is not searched. Rows that differ in what is searched alone share one search.
std::optional<Beside> beside_best(const Case& row) {
  static std::map<std::string, Best> known;
  try {
    const Scenario scenario = scenario_of(row);
    if (!std::holds_alternative<TrainWorkload>(scenario.workload)) return std::nullopt;
    std::vector<PlanSpace> spaces;
    spaces.emplace_back(document_of(row), row.name, PlanDimensions::all());
    const std::string key = text_of(spaces.front().document());
    if (!known.contains(key)) known[key] = best_plan(spaces);
    if (known[key].step == Seconds::infinity()) return std::nullopt;
    const Result result = predict(scenario, Fidelity::flows);
    return Beside{result.time(), result.train()->memory.fits(), known[key]};
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

/// Of one table alone where the variable FORETRAIN_TABLE names it; every so many rows where FORETRAIN_EVERY says so.
TEST_CASE("Published plans of all tables beside the best of their clusters, by simulation", "[.published]") {
  const char* one = std::getenv("FORETRAIN_TABLE");
  const char* share = std::getenv("FORETRAIN_EVERY");
  const std::size_t every = share != nullptr ? std::stoul(share) : 1;
  int compared = 0, slower = 0;
  for (const auto& file : std::filesystem::directory_iterator(FORETRAIN_SOURCE_DIR "/scenarios/cases")) {
    const std::string table = file.path().stem();
    if (one != nullptr && table != one) continue;
    const std::vector<Case> rows = rows_of(table);
    for (std::size_t i = 0; i < rows.size(); i += every) {
      const Case& row = rows[i];
      const std::optional<Beside> both = beside_best(row);
      if (!both) continue;
      ++compared;
      const double faster = both->published / both->best.step;
      const bool is_slower = faster < 1.0 - 1e-9 && both->fits;
      slower += is_slower ? 1 : 0;
      std::cout << fmt::format("{}{:40} published {:8.4f} s{} best {:8.4f} s, {:.3f} times as fast: {}\n",
                               is_slower ? "SLOWER " : "", row.name, both->published.value(),
                               both->fits ? "," : " (does not fit),", both->best.step.value(), faster,
                               describe(both->best.point))
                << std::flush;
    }
  }
  std::cout << fmt::format("{} rows, in {} of them the published plan is faster\n", compared, slower);
}

}  // namespace foretrain::test
