// Every prediction of the catalogue and of the shipped tables, kept as its main figures. A change that is not meant to
// move a prediction moves nothing here, and one that is says what moved.
#include <charconv>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/cases.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/measured/measured.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

std::string line_of(const std::string& run, std::string_view fidelity, const Result& result) {
  Breakdown parts;
  double memory = 0.0;
  if (result.train()) {
    parts = result.train()->breakdown;
    memory = result.train()->memory.total().value();
  }
  return fmt::format("{},{},{},{},{},{},{},{},{},{:.0f}\n", run, fidelity, result.time().value(), parts.compute.value(),
                     parts.exposed_communication.value(), parts.pipeline_bubble.value(), parts.data_stall.value(),
                     parts.host_overhead.value(), parts.optimizer.value(), memory);
}

/// Whether two cells are the same words, or numbers of which the first nine digits are.
bool same(const std::string& cell, const std::string& expected) {
  double a = 0.0, b = 0.0;
  const auto is_number = [](const std::string& text, double& value) {
    return std::from_chars(text.data(), text.data() + text.size(), value).ptr == text.data() + text.size();
  };
  if (!is_number(cell, a) || !is_number(expected, b)) return cell == expected;
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

/// Line by line, so that a failure names the prediction that moved.
void compare_lines(const std::string& actual, const std::string& expected) {
  const std::vector<std::string> lines = split(actual, '\n'), golden_lines = split(expected, '\n');
  CHECK(lines.size() == golden_lines.size());
  for (std::size_t i = 0; i < std::min(lines.size(), golden_lines.size()); ++i) {
    INFO(lines[i] << "\nwas\n" << golden_lines[i]);
    CHECK(std::ranges::equal(split(lines[i], ','), split(golden_lines[i], ','), same));
  }
}

}  // namespace

TEST_CASE("Every run of the catalogue is predicted as before, at every fidelity", "[golden]") {
  std::string text =
      "run,fidelity,time_s,compute_s,exposed_communication_s,pipeline_bubble_s,data_stall_s,host_overhead_s,"
      "optimizer_s,memory_bytes\n";
  for (const CatalogueEntry& run : list_scenarios()) {
    const Scenario scenario = load_scenario(run.file);
    for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows, Fidelity::steps}) {
      // Half a minute of each of these; deepseek-v3-128-gb200 has the same collectives.
      if (fidelity == Fidelity::steps && run.name.starts_with("deepseek-v3-2048")) continue;
      try {
        text += line_of(run.name, name(fidelity), predict(scenario, fidelity));
      } catch (const UsageError&) {
        text += fmt::format("{},{},refused\n", run.name, name(fidelity));  // too many unlike flows for every step
      }
    }
  }
  compare_lines(text, golden("predictions.csv", text));
}

TEST_CASE("Every shipped table is met as before", "[golden]") {
  std::string text = "table,group,n,mape,bias,worst_case\n";
  std::vector<std::filesystem::path> tables;
  for (const auto& entry : std::filesystem::directory_iterator(data_directory() / "cases")) {
    tables.push_back(entry.path());
  }
  std::ranges::sort(tables);
  for (const std::filesystem::path& table : tables) {
    std::vector<Comparison> comparisons;
    for (const Case& row : read_cases(table)) {
      for (Comparison& comparison : compare(row, predict(scenario_of(row), Fidelity::flows))) {
        comparisons.push_back(std::move(comparison));
      }
    }
    for (const GroupAccuracy& group : accuracy_report(comparisons, {}, 0).groups) {
      const ErrorStatistics& errors = group.statistics;
      text += fmt::format("{},{},{},{},{},{}\n", table.stem().string(), group.name, errors.n, errors.mape, errors.bias,
                          errors.worst_case);
    }
  }
  compare_lines(text, golden("tables.csv", text));
}

}  // namespace foretrain::test
