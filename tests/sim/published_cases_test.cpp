// The accuracy that is claimed, held against the published training runs that come with the program.
#include <cmath>
#include <map>
#include <string>

#include "model/scenario/cases.hpp"
#include "sim/predict.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

struct Errors {
  double sum = 0.0;
  int count = 0;
  [[nodiscard]] double mean() const { return sum / count; }
};

double predicted(const StepResult& result, MeasuredQuantity quantity) {
  switch (quantity) {
    case MeasuredQuantity::samples_per_second:
      return result.train->samples_per_second;
    case MeasuredQuantity::tokens_per_second:
      return result.train->tokens_per_second;
    default:
      return result.time().value();
  }
}

/// Mean absolute error of each group of a shipped table.
std::map<std::string, Errors> errors_of(const std::string& table) {
  std::map<std::string, Errors> groups;
  for (const Case& row : read_cases(FORETRAIN_SOURCE_DIR "/scenarios/cases/" + table)) {
    const StepResult result = predict(scenario_of(row), Fidelity::estimate);
    for (const Measurement& measured : row.measured) {
      Errors& errors = groups[row.group];
      errors.sum += std::abs(predicted(result, measured.quantity) / measured.value - 1.0);
      ++errors.count;
    }
  }
  return groups;
}

}  // namespace

TEST_CASE("vTrain's runs on A100, 41 rows: within 10 %") {
  const Errors errors = errors_of("cases_vtrain_a100.csv").at("vtrain");
  CHECK(errors.count == 41);
  CHECK(errors.mean() < 0.10);
}

TEST_CASE("llm-foundry's runs on A100, 61 rows: within 8 %") {
  const Errors errors = errors_of("cases_llm_foundry_a100_80gb.csv").at("llm-foundry-a100_80gb");
  CHECK(errors.count == 61);
  CHECK(errors.mean() < 0.08);
}

TEST_CASE("Llama 3 on H100, 33 rows: within 5 %") {
  for (const auto& [name, errors] : errors_of("cases_dgxc_llama3_h100.csv")) {
    INFO(name);
    CHECK(errors.mean() < 0.05);
  }
}

TEST_CASE("TensorFlow 2017 on P100 and K80, 127 rows, parameter server and replicated: within 15 % per platform") {
  for (const auto& [name, errors] : errors_of("cases_tensorflow_2017.csv")) {
    INFO(name);
    CHECK(errors.mean() < 0.15);
  }
}

TEST_CASE("NeMo in fp8 on H100, no row fitted: within 15 %") {
  CHECK(errors_of("cases_nemo_fp8_h100.csv").at("nemo-fp8-h100").mean() < 0.15);
}
