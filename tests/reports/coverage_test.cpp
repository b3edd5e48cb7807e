// Coverage of printed ranges over the shipped measurements: of all, of each group, of each kind; and runs of one model
// in many frameworks: no prediction can be right for all, but none may lie outside of what they differ by.
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/reports/accuracy_bar.hpp"

using namespace foretrain;

using foretrain::test::shipped_cases;

namespace {

/// A measured time beside its range.
struct Row {
  std::string group, kind;  ///< the kind of measurements that most of the range depends on
  double late = 1.0;        ///< measured over predicted time
  double slower = 0.0, faster = 0.0;

  [[nodiscard]] bool held(double width = 1.0) const {
    return late <= 1.0 + width * slower && 1.0 / late <= 1.0 + width * faster;
  }
};

/// Groups that no range is made of (tests/benchmark/ranges.py, LEFT_OUT): two old frameworks' BERT, two to three times
/// as slow as its like. A cluster that used two of a node's eight cards; an MPI library that waits with all cores busy;
/// reports that leave settings open.
bool is_unlike(const Row& row) {
  return row.group == "dlperf-bert-base-NGC TensorFlow 1.x" || row.group == "dlperf-bert-base-PaddlePaddle" ||
         row.group == "nccl-h100-two-nodes" || row.group == "host-mpi" || row.group.starts_with("report-");
}

std::vector<Row> rows_of_shipped_tables() {
  std::set<std::filesystem::path> tables;
  for (const auto& entry : std::filesystem::directory_iterator(FORETRAIN_SOURCE_DIR "/scenarios/cases")) {
    if (entry.path().extension() == ".csv") tables.insert(entry.path());
  }
  std::vector<Row> rows;
  for (const std::filesystem::path& table : tables) {
    for (const Case& shipped : shipped_cases(table.filename())) {
      const Result result = predict(scenario_of(shipped), Fidelity::estimate);
      for (const Comparison& c : compare(shipped, result)) {
        if (!c.covered || c.causes.empty()) continue;
        const auto main = std::ranges::max_element(c.causes, {}, &UncertaintyCause::share);
        rows.push_back({c.group, main->constant, 1.0 / (1.0 + c.error()), result.uncertainty_high / result.time() - 1.0,
                        result.time() / result.uncertainty_low - 1.0});
      }
    }
  }
  std::erase_if(rows, is_unlike);
  return rows;
}

double share_held(const std::vector<Row>& rows, double width = 1.0) {
  const auto held = std::ranges::count_if(rows, [width](const Row& row) { return row.held(width); });
  return static_cast<double>(held) / static_cast<double>(rows.size());
}

std::map<std::string, std::vector<Row>> by(std::string Row::*what, const std::vector<Row>& rows) {
  std::map<std::string, std::vector<Row>> parts;
  for (const Row& row : rows) parts[row.*what].push_back(row);
  return parts;
}

/// The same where each group counts as eight rows at most, as in the making of ranges (ranges.py).
double share_held_by_groups(const std::vector<Row>& rows, double width) {
  double held = 0.0, all = 0.0;
  for (const auto& [group, of_group] : by(&Row::group, rows)) {
    const double weight = std::min(8.0, static_cast<double>(of_group.size()));
    held += weight * share_held(of_group, width);
    all += weight;
  }
  return held / all;
}

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

TEST_CASE("Ranges hold about nine of ten measured times, of each kind and of each group of eight, and are no wider") {
  const std::vector<Row> rows = rows_of_shipped_tables();
  CHECK(rows.size() > 6000);
  CHECK(share_held(rows) > 0.88);
  CHECK(share_held(rows) < 0.95);
  for (const auto& [kind, of_kind] : by(&Row::kind, rows)) {
    const std::size_t groups = by(&Row::group, of_kind).size();
    INFO(kind << ": " << of_kind.size() << " rows of " << groups << " groups, held " << share_held(of_kind)
              << ", at 0.6 of the width " << share_held_by_groups(of_kind, 0.6));
    if (of_kind.size() < 20) continue;
    // Of few rows nine of ten are held give or take two standard deviations of such a share.
    const double deviation = std::sqrt(0.9 * 0.1 / static_cast<double>(of_kind.size()));
    CHECK(share_held(of_kind) >= std::min(0.86, 0.9 - 2.0 * deviation));
    // Two to four groups say little of the next one: their ranges reach farther than nine of ten.
    // That of frameworks without a name is made of those with one, predicted without it, not of these rows.
    if (groups < 5 || kind == "uncertainty.unnamed") continue;
    CHECK(share_held(of_kind) <= std::max(0.975, 0.9 + 2.001 * deviation));
    // Recipes have a long tail, NeMo of 2024: the range that holds it holds 0.868 at 0.6 of its width.
    CHECK(share_held_by_groups(of_kind, 0.6) < 0.87);
  }
  // No group of a kind stands beside its range.
  for (const auto& [group, of_group] : by(&Row::group, rows)) {
    INFO(group << ": " << of_group.size() << " rows");
    if (of_group.size() >= 8) CHECK(share_held(of_group) >= 0.75);
  }
}

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
