// Every prediction of the catalogue and of the shipped tables, kept as its main figures and a hash of all that it says:
// a change that is not meant to move a prediction moves nothing here, and one that is says what moved.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/cases.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/measured/measured.hpp"
#include "reports/result/json.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

constexpr std::array<std::pair<Fidelity, const char*>, 3> fidelities = {
    {{Fidelity::estimate, "estimate"}, {Fidelity::flows, "flows"}, {Fidelity::steps, "steps"}}};

/// A result's JSON without what no run changes: its version, the model's size, and what the scenario says in words.
/// Files of the source tree are named from its root.
std::string text_of(Result result) {
  constexpr std::string_view root = FORETRAIN_SOURCE_DIR "/";
  result.settings.clear();
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(to_json(result));
  json.erase("schema_version");
  json.erase("parameters");
  std::string text = json.dump(2);
  for (std::size_t at = text.find(root); at != std::string::npos; at = text.find(root, at)) text.erase(at, root.size());
  return text;
}

std::string line_of(const std::string& run, const char* fidelity, const Result& result) {
  Breakdown parts;
  double memory = 0.0;
  if (result.train()) {
    parts = result.train()->breakdown;
    memory = result.train()->memory.total().value();
  }
  return fmt::format("{},{},{},{},{},{},{},{},{},{:.0f},{:016x}\n", run, fidelity, result.time().value(),
                     parts.compute.value(), parts.exposed_communication.value(), parts.pipeline_bubble.value(),
                     parts.data_stall.value(), parts.host_overhead.value(), parts.optimizer.value(), memory,
                     fnv_1a(text_of(result)));
}

/// Line by line, so that a failure names the prediction that moved.
void compare_lines(const std::string& actual, const std::string& expected) {
  const std::vector<std::string> lines = split(actual, '\n');
  const std::vector<std::string> golden_lines = split(expected, '\n');
  CHECK(lines.size() == golden_lines.size());
  for (std::size_t i = 0; i < std::min(lines.size(), golden_lines.size()); ++i) CHECK(lines[i] == golden_lines[i]);
}

}  // namespace

TEST_CASE("Every run of the catalogue is predicted as before, at every fidelity", "[golden]") {
  std::string text =
      "run,fidelity,time_s,compute_s,exposed_communication_s,pipeline_bubble_s,data_stall_s,host_overhead_s,"
      "optimizer_s,memory_bytes,hash\n";
  for (const CatalogueEntry& run : list_scenarios()) {
    const Scenario scenario = load_scenario(run.file);
    for (const auto& [fidelity, word] : fidelities) {
      try {
        text += line_of(run.name, word, predict(scenario, fidelity));
      } catch (const UsageError&) {
        text += fmt::format("{},{},refused\n", run.name, word);  // too many unlike flows to simulate every step
      }
    }
  }
  compare_lines(text, golden("predictions.csv", text));
}

TEST_CASE("Every shipped table is met as before", "[golden]") {
  std::string text = "table,group,n,mape,bias,worst_case,hash\n";
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
      std::uint64_t hash = fnv_1a_start;
      for (const Comparison& comparison : comparisons) {
        if (comparison.group == group.name) hash = fnv_1a(fmt::format("{},", comparison.predicted), hash);
      }
      const ErrorStatistics& errors = group.statistics;
      text += fmt::format("{},{},{},{},{},{},{:016x}\n", table.stem().string(), group.name, errors.n, errors.mape,
                          errors.bias, errors.worst_case, hash);
    }
  }
  compare_lines(text, golden("tables.csv", text));
}

}  // namespace foretrain::test
