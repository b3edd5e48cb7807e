// The replays that come with the program are predicted as well as their documentation says.
#include <filesystem>

#include "model/scenario/load/cases.hpp"
#include "reports/measured/measured.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/reports/accuracy_bar.hpp"

using namespace foretrain;

TEST_CASE("all-reduces on real hosts are predicted within 10 percent on average, nothing fitted", "[host]") {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
  const std::string table = FORETRAIN_SOURCE_DIR "/scenarios/cases/cases_host_replay.csv";
  if (!std::filesystem::exists(table)) return;  // validate/host_replay/campaign.sh makes it
  std::vector<Comparison> comparisons;
  for (const Case& row : read_cases(table)) {
    const Scenario scenario = scenario_of(row);
    // Below 1 MB buckets and latency are all there is: measured, but no bar.
    if (std::get<CollectiveWorkload>(scenario.workload).size < Bytes(1e6)) continue;
    const std::vector<Comparison> of_row = compare(row, predict(scenario, Fidelity::flows));
    comparisons.insert(comparisons.end(), of_row.begin(), of_row.end());
  }
  const ErrorStatistics errors = error_statistics(comparisons);
  CHECK(errors.n > 100);
  CHECK(foretrain::test::missed(0.10, errors) == "");
}
