// Runs of one model in many frameworks: no prediction can be right for all of them, but none may lie outside of what
// they differ by among themselves.
#include "tests/catch.hpp"
#include "tests/reports/accuracy_bar.hpp"

using namespace foretrain;

namespace {

/// Configuration that runs of frameworks share: model, GPUs, number format, samples per GPU and pass.
using Configuration = std::tuple<std::string, int, Precision, std::int64_t>;

struct Measured {
  std::vector<double> samples_per_second;  ///< a row each
  double predicted = 0.0;
};

std::map<Configuration, Measured> configurations() {
  std::map<Configuration, Measured> found;
  for (const Case& row : foretrain::test::shipped_cases("cases_dlperf_resnet50_bert_8gpu.csv")) {
    const Scenario scenario = scenario_of(row);
    const auto& train = std::get<TrainWorkload>(scenario.workload);
    Measured& entry = found[{train.model.name, scenario.cluster.gpus(), train.precision, train.micro_batch}];
    for (const Comparison& comparison : compare(row, predict(scenario, Fidelity::flows))) {
      entry.samples_per_second.push_back(comparison.measured);
      entry.predicted = comparison.predicted;
    }
  }
  return found;
}

}  // namespace

TEST_CASE("DLPerf: four rows of five lie where the frameworks' own spread contains the prediction") {
  // For each model, number of GPUs, precision and batch the predicted throughput must lie between the slowest and the
  // fastest framework measured there, each end widened by 5 %. A measurement repeated varies by 1 to 5 %. Where one
  // framework alone ran a batch, it is slowest and fastest at once, and the prediction must meet it within 5 %.
  int rows = 0, within = 0;
  for (const auto& [configuration, measured] : configurations()) {
    const auto [slowest, fastest] = std::ranges::minmax(measured.samples_per_second);
    const bool inside = measured.predicted >= 0.95 * slowest && measured.predicted <= 1.05 * fastest;
    rows += static_cast<int>(measured.samples_per_second.size());
    if (inside) within += static_cast<int>(measured.samples_per_second.size());
    INFO(std::get<0>(configuration) << ", " << std::get<1>(configuration) << " GPUs, batch "
                                    << std::get<3>(configuration) << ": " << slowest << " to " << fastest
                                    << " samples/s, predicted " << measured.predicted);
    CHECK(measured.predicted <= 1.35 * fastest);
    CHECK(measured.predicted >= 0.65 * slowest);
  }
  CHECK(rows == 84);
  CHECK(within >= 0.75 * rows);  // 64: gradients are assumed in fp32, and written into their buckets
}
