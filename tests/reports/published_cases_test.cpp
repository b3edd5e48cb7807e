// The accuracy that is claimed, held against the published training runs that come with the program.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/scenario/cases.hpp"
#include "reports/accuracy.hpp"
#include "reports/measured.hpp"
#include "sim/predict.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Error statistics of each group of a shipped table.
std::map<std::string, ErrorStatistics> errors_of(const std::string& table) {
  std::vector<Comparison> comparisons;
  for (const Case& row : read_cases(FORETRAIN_SOURCE_DIR "/scenarios/cases/" + table)) {
    for (Comparison& comparison : compare(row, predict(scenario_of(row), Fidelity::estimate))) {
      comparisons.push_back(std::move(comparison));
    }
  }
  std::map<std::string, ErrorStatistics> groups;
  for (const GroupAccuracy& group : accuracy_report(comparisons, {}, 0).groups) groups[group.name] = group.statistics;
  return groups;
}

}  // namespace

TEST_CASE("vTrain's runs on A100, 41 rows: within 10 %") {
  const ErrorStatistics errors = errors_of("cases_vtrain_a100.csv").at("vtrain");
  CHECK(errors.n == 41);
  CHECK(errors.mape < 0.10);
}

TEST_CASE("llm-foundry's runs on A100, 61 rows: within 8 %") {
  const ErrorStatistics errors = errors_of("cases_llm_foundry_a100_80gb.csv").at("llm-foundry-a100_80gb");
  CHECK(errors.n == 61);
  CHECK(errors.mape < 0.08);
}

TEST_CASE("Llama 3 on H100, 33 rows: within 5 %") {
  for (const auto& [name, errors] : errors_of("cases_dgxc_llama3_h100.csv")) {
    INFO(name);
    CHECK(errors.mape < 0.05);
  }
}

TEST_CASE("TensorFlow 2017 on P100 and K80, 127 rows, parameter server and replicated: within 15 % per platform") {
  for (const auto& [name, errors] : errors_of("cases_tensorflow_2017.csv")) {
    INFO(name);
    CHECK(errors.mape < 0.15);
  }
}

TEST_CASE("NeMo in fp8 on H100, no row fitted: within 15 %") {
  CHECK(errors_of("cases_nemo_fp8_h100.csv").at("nemo-fp8-h100").mape < 0.15);
}
