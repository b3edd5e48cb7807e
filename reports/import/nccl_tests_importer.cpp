// Output of the programs of nccl-tests (github.com/NVIDIA/nccl-tests, src/common.cu), as a table of cases for
// `foretrain validate`: a row for each size, out of place and in place.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "model/base/csv.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/collectives/operation.hpp"
#include "model/scenario/load/cases.hpp"
#include "reports/import/draft.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/node_draft.hpp"

namespace foretrain {

namespace {

struct Measured {
  double bytes = 0.0, microseconds = 0.0, algorithm_bandwidth = 0.0, bus_bandwidth = 0.0;
  std::string reduction, root;
  bool in_place = false;
  SourcePosition where;
};

/// Values of lines that begin with "#".
struct Surroundings {
  std::map<std::string, int> ranks_on;  ///< by host
  std::string gpu;                      ///< "NVIDIA H100 80GB HBM3"
  std::string operation;                ///< empty: not described
  [[nodiscard]] int ranks() const {
    int sum = 0;
    for (const auto& [host, ranks] : ranks_on) sum += ranks;
    return sum;
  }
};

/// Words of the table's header: which column is what.
struct Columns {
  std::vector<std::string> words;
  [[nodiscard]] std::optional<std::size_t> find(std::string_view word, int occurrence) const {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == word && occurrence-- == 0) return i;
    }
    return std::nullopt;
  }
};

/// Programs are called after what they measure: all_reduce_perf, alltoall_perf.
struct ProgramRow {
  std::string_view program, operation;
};
constexpr ProgramRow programs[] = {
    {"all_reduce_perf", "all_reduce"}, {"all_gather_perf", "all_gather"}, {"reduce_scatter_perf", "reduce_scatter"},
    {"broadcast_perf", "broadcast"},   {"reduce_perf", "reduce"},         {"alltoall_perf", "all_to_all"},
    {"sendrecv_perf", "send_receive"}};

std::string operation_named_in(std::string_view text) {
  for (const ProgramRow& row : programs) {
    if (text.find(row.program) != std::string_view::npos) return std::string(row.operation);
  }
  return "";
}

class OutputReader {
 public:
  explicit OutputReader(const ImportInput& input) : input_(input) {
    surroundings.operation = operation_named_in(input.text);
    if (surroundings.operation.empty()) surroundings.operation = operation_named_in(input.file);
    for (const std::string& line : split(input.text, '\n')) {
      ++number_;
      // mpirun --tag-output: "[1,0]<stdout>:" before each line
      const std::size_t tag = line.starts_with("[") ? line.find("<stdout>:") : std::string::npos;
      read_line(tag == std::string::npos ? line : line.substr(tag + 9));
    }
    if (rows.empty()) {
      throw ScenarioError({input.file, 0, 0}, "", "no measurements", "what a program of nccl-tests prints, all of it");
    }
  }

  Surroundings surroundings;
  std::vector<Measured> rows;

 private:
  void read_line(const std::string& line) {
    std::vector<std::string> words = split_words(line);
    if (words.empty()) return;
    if (words[0].starts_with("#")) {
      if (words[0] == "#") words.erase(words.begin());
      if (words.size() >= 6 && words[0] == "Rank") read_device(words);
      const bool header =
          std::ranges::find(words, "size") != words.end() && std::ranges::find(words, "time") != words.end();
      if (header) columns_.words = words;
      return;
    }
    const bool data = words[0].find_first_not_of("0123456789") == std::string::npos;
    if (!data || columns_.words.empty()) return;
    for (int place = 0; place < 2; ++place) {
      if (columns_.find("time", place)) add_row(words, place, line);
    }
  }

  /// "Rank  0 Group  0 Pid 41 on   node1 device  0 [0x18] NVIDIA H100 80GB HBM3"
  void read_device(const std::vector<std::string>& words) {
    const auto on = std::ranges::find(words, "on"), device = std::ranges::find(words, "device");
    if (on == words.end() || device == words.end() || device - on < 2) return;
    ++surroundings.ranks_on[*(on + 1)];
    auto word = device + 1;
    if (word != words.end()) ++word;  // its number; then its place on the bus
    while (word != words.end() && (word->starts_with("[") || word->ends_with("]"))) ++word;
    surroundings.gpu = fmt::format("{}", fmt::join(word, words.end(), " "));
  }

  void add_row(const std::vector<std::string>& words, int place, const std::string& line) {
    const auto cell = [&](std::string_view column, int occurrence) -> const std::string& {
      const auto index = columns_.find(column, occurrence);
      if (!index || *index >= words.size()) {
        throw ScenarioError({input_.file, number_, static_cast<int>(line.size()) + 1}, std::string(column),
                            fmt::format("{} columns", words.size()),
                            fmt::format("{}, as in the header", columns_.words.size()));
      }
      return words[*index];
    };
    const auto number = [&](std::string_view column, int occurrence) {
      const std::string& text = cell(column, occurrence);
      try {
        return parse_number(text);
      } catch (const UnitError& error) {
        throw ScenarioError({input_.file, number_, static_cast<int>(line.find(text)) + 1}, std::string(column),
                            error.got(), error.expected());
      }
    };
    Measured row;
    row.bytes = number("size", 0);
    row.microseconds = number("time", place);
    row.algorithm_bandwidth = number("algbw", place);
    row.bus_bandwidth = number("busbw", place);
    if (columns_.find("redop", 0)) row.reduction = cell("redop", 0);
    if (columns_.find("root", 0)) row.root = cell("root", 0);
    row.in_place = place == 1;
    row.where = {input_.file, number_, 1};
    if (row.bytes < 1.0) return;
    const auto refuse = [&](std::string_view column, int occurrence, const std::string& got) {
      const auto at = line.find(cell(column, occurrence));
      throw ScenarioError({input_.file, number_, static_cast<int>(at) + 1}, std::string(column), got,
                          "a run whose results were checked and right, or the output without this line");
    };
    if (!(row.microseconds > 0.0)) refuse("time", place, "nothing takes no time");
    if (const auto wrong = columns_.find("#wrong", place); wrong && *wrong < words.size() && words[*wrong] != "N/A") {
      if (number("#wrong", place) != 0.0) refuse("#wrong", place, words[*wrong] + " wrong results");
    }
    rows.push_back(std::move(row));
  }

  const ImportInput& input_;
  Columns columns_;
  int number_ = 0;
};

/// Deduces the operation if no program is named, by reductions and roots, or by bus bytes per byte.
std::string deduced_operation(const OutputReader& output, int ranks) {
  const Measured& row = output.rows.back();
  const double share = row.algorithm_bandwidth > 0.0 ? row.bus_bandwidth / row.algorithm_bandwidth : 0.0;
  const bool reduces = !row.reduction.empty() && row.reduction != "none";
  const bool rooted = !row.root.empty() && row.root != "-1";
  if (rooted) return reduces ? "reduce" : "broadcast";
  if (reduces && ranks > 2) return share > 1.0 ? "all_reduce" : "reduce_scatter";
  throw ScenarioError(row.where, "workload.collective.operation", "the output does not name the operation",
                      "the command line in the file, or --set workload.collective.operation=all_gather");
}

/// The catalogue's machine with as many GPUs of that name: "NVIDIA H100 80GB HBM3" is in dgx-h100.
std::string likely_node(const std::string& name, int gpus, const SourcePosition& where) {
  const auto gpu = gpu_of_name(name);
  if (!gpu) {
    throw ScenarioError(where, "cluster.node", fmt::format("no GPU of the catalogue is \"{}\"", name),
                        "--set cluster.node=NAME of `foretrain list`");
  }
  DescribedNode described;
  described.gpus = gpus;
  const YamlNode nearest = nearest_node(described, *gpu);
  const auto has = number_behind("n" + text_at(nearest, "gpus"), "n");
  if (text_at(nearest, "gpu") == *gpu && has && *has >= gpus) return text_at(nearest, "name");
  throw ScenarioError(
      where, "cluster.node", fmt::format("no machine of the catalogue has {} {}", gpus, *gpu),
      fmt::format("--set cluster.node=FILE.yaml, of `foretrain hardware init --gpu {} --gpus {}`", *gpu, gpus));
}

/// A column of the table with the same value in every row.
using Constants = std::vector<std::pair<std::string, std::string>>;

void set_constant(Constants& constants, const std::string& key, const std::string& value) {
  const auto old = std::ranges::find(constants, key, &std::pair<std::string, std::string>::first);
  if (old == constants.end()) constants.emplace_back(key, value);
}

Constants constant_cells(const OutputReader& output, const ImportInput& input) {
  Constants constants;
  for (const std::string& text : input.overrides) {
    const Override override = parse_override(text);
    set_constant(constants, override.key, std::string(trim(override.value)));
  }
  const auto said = [&](std::string_view key) {
    return std::ranges::any_of(constants, [&](const auto& cell) { return cell.first == key; });
  };
  const Surroundings& around = output.surroundings;
  const SourcePosition nowhere{input.file, 0, 0};
  const int hosts = static_cast<int>(around.ranks_on.size()), ranks = around.ranks();
  if (hosts == 0 && !said("cluster.node")) {
    throw ScenarioError(nowhere, "cluster.node", "no line names a device (\"# Rank 0 … on HOST device 0\")",
                        "these lines, or --set cluster.node=NAME");
  }
  if (hosts > 0) {
    const int each = (ranks + hosts - 1) / hosts;
    if (!said("cluster.node")) set_constant(constants, "cluster.node", likely_node(around.gpu, each, nowhere));
    set_constant(constants, "cluster.nodes", std::to_string(hosts));
    set_constant(constants, "cluster.gpus_per_node", std::to_string(each));
  }
  if (!said("workload.collective.operation")) {
    set_constant(constants, "workload.collective.operation",
                 around.operation.empty() ? deduced_operation(output, ranks) : around.operation);
  }
  set_constant(constants, "workload.collective.algorithm", "auto");
  return constants;
}

}  // namespace

std::string import_nccl_tests(const ImportInput& input) {
  require_config_text(input);
  const OutputReader output(input);
  const Constants constants = constant_cells(output, input);
  const std::string operation =
      std::ranges::find(constants, "workload.collective.operation", &Constants::value_type::first)->second;
  std::vector<std::string> header = {"case", "group"};
  for (const auto& [key, value] : constants) header.push_back(key);
  for (const char* key : {"workload.collective.size", "measured.time", "measured.bus_bandwidth", "source"}) {
    header.emplace_back(key);
  }
  std::string text = csv_line(header) + "\n";
  for (const Measured& row : output.rows) {
    const std::string place = row.in_place ? "in-place" : "out-of-place";
    const std::string stem = file_stem(input);
    std::vector<std::string> cells = {fmt::format("{}-{}-{:.0f}-{}", stem, operation, row.bytes, place),
                                      fmt::format("{}-{}", stem, place)};
    for (const auto& [key, value] : constants) cells.push_back(value);
    cells.push_back(fmt::format("{:.0f} B", row.bytes));
    cells.push_back(fmt::format("{} us", row.microseconds));
    constexpr double least_told = 10.0;  // GB/s: of less, two decimals are too few digits
    cells.push_back(row.bus_bandwidth >= least_told ? fmt::format("{} GB/s", row.bus_bandwidth) : "");
    cells.push_back(fmt::format("nccl-tests: {}, line {}; {}", input.file, row.where.line, output.surroundings.gpu));
    text += csv_line(cells) + "\n";
  }
  try {
    scenario_of(read_cases_text(text, input.file).front());
  } catch (const ScenarioError& error) {
    throw ScenarioError(output.rows.front().where, error.key(), error.got(), error.expected());
  }
  return text;
}

}  // namespace foretrain
