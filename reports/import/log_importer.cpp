// Training logs as a table of cases, and the arguments that trainers print at a log's head as its scenario.
#include <fmt/ranges.h>

#include <algorithm>

#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/scenario/load/cases.hpp"
#include "reports/import/kineto_trace.hpp"
#include "reports/import/training_log.hpp"

namespace foretrain {

namespace {

enum class HeadTool { megatron, torchtitan, deepspeed };
struct HeadRow {
  std::string_view text;
  HeadTool tool;
};
constexpr HeadRow head_rows[] = {
#define LOG_HEAD(text, tool) {text, HeadTool::tool},
#include "reports/import/log_figures.def"
};

/// Without what launchers put before each line: "[rank0]:", "[default0]:", "0: ".
std::string_view without_prefix(std::string_view line) {
  const bool marked = line.starts_with("[rank") || line.starts_with("[default");
  if (const std::size_t end = line.find("]:"); marked && end != std::string_view::npos) line.remove_prefix(end + 2);
  const std::size_t colon = line.find(": ");
  const bool number = colon != std::string_view::npos && line.substr(0, colon).find_first_not_of("0123456789 ") > colon;
  if (number && colon > 0) line.remove_prefix(colon + 2);
  return line;
}

/// The table's name of an argument, and its option; inverse: an option that turns it off.
struct ArgumentName {
  std::string_view table, option;
  bool inverse;
};
constexpr ArgumentName argument_names[] = {
    {"gradient_accumulation_fusion", "no_gradient_accumulation_fusion", true},
    {"add_bias_linear", "disable_bias_linear", true},
    {"padded_vocab_size", "vocab_size", false},
    {"virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank", false}};

/// "  num_layers ............ 24" between the lines around Megatron's arguments, in the words of its command line.
/// Leaves out arguments that are off or absent, and those of experts if there are none.
std::vector<ForeignSetting> megatron_arguments(const ImportInput& input, std::size_t begin) {
  std::vector<ForeignSetting> settings;
  int line_number = position_in(input.text, begin, input.file).line;
  bool experts = false;
  for (const std::string& line : split(std::string_view(input.text).substr(begin), '\n')) {
    if (line.find("end of arguments") != std::string::npos) break;
    const SourcePosition where{input.file, line_number++, 1};
    const std::size_t dots = line.find(" .."), begin_of_value = line.find_first_not_of(" .", dots);
    const std::vector<std::string> before = split_words(line.substr(0, dots));
    if (dots == std::string::npos || begin_of_value == std::string::npos || before.empty()) continue;
    std::string key = before.back(), value(trim(std::string_view(line).substr(begin_of_value)));
    if (value.starts_with("['") && value.ends_with("']")) value = value.substr(2, value.size() - 4);
    for (const auto& [from, to, inverse] : argument_names) {
      if (key != from) continue;
      key = to;
      if (inverse) value = value == "False" ? "True" : "False";
      break;
    }
    if (value == "None" || value == "False") continue;
    std::ranges::replace(key, '_', '-');
    experts = experts || key == "num-experts";
    if (key == "world-size") {
      constexpr int usual = 8;
      const int gpus = number_behind("n" + value, "n").value_or(0);
      if (gpus > usual && gpus % usual != 0) continue;
      settings.push_back({"--nproc-per-node", std::to_string(std::min(gpus, usual)), where});
      key = "nnodes";
      value = std::to_string(std::max(gpus / usual, 1));
    }
    settings.push_back({"--" + key, value == "True" ? "" : value, where});
  }
  std::erase_if(settings, [experts](const ForeignSetting& one) {
    return !experts && (one.key.starts_with("--moe-") || one.key.starts_with("--expert-"));
  });
  return settings;
}

/// The JSON that begins at this brace, each line at its place of the file.
ImportInput json_at(const ImportInput& input, std::size_t brace) {
  ImportInput part = input;
  part.text = std::string(static_cast<std::size_t>(position_in(input.text, brace, input.file).line - 1), '\n');
  int depth = 0;
  for (const std::string& line : split(std::string_view(input.text).substr(brace), '\n')) {
    part.text += std::string(without_prefix(line)) + "\n";
    for (const char c : line) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth <= 0) break;
  }
  part.text.erase(part.text.rfind('}') + 1);
  return part;
}

/// torchtitan's settings, and the GPUs that it found for what its configuration leaves open.
Settings torchtitan_arguments(const ImportInput& input, std::size_t brace) {
  std::vector<ForeignSetting> settings = flat_settings(parse_config(json_at(input, brace), "torchtitan's settings"));
  for (ForeignSetting& setting : settings) setting.key = torchtitan_name_of_today(setting.key);
  for (const std::string_view text : {"dp_shard=", "['dp_shard'], ["}) {
    const std::size_t place = input.text.find(text);
    if (place == std::string::npos) continue;
    const std::size_t digits = place + text.size();
    settings.push_back({"parallelism.data_parallel_shard_degree",
                        input.text.substr(digits, input.text.find_first_not_of("0123456789", digits) - digits),
                        position_in(input.text, place, input.file)});
  }
  return Settings(std::move(settings));
}

constexpr std::pair<LogQuantity, MeasuredQuantity> log_columns[] = {
    {LogQuantity::time, MeasuredQuantity::step_time},
    {LogQuantity::samples_per_second, MeasuredQuantity::samples_per_second},
    {LogQuantity::tokens_per_second, MeasuredQuantity::tokens_per_second},
    {LogQuantity::tokens_per_second_per_gpu, MeasuredQuantity::tokens_per_second_per_gpu}};

Cells cells_of(const LoggedRun& run, const std::string& base, const std::vector<std::string>& overrides) {
  ImportInput named_file;
  named_file.file = run.file;
  Cells cells = {{"case", file_stem(named_file)}};
  if (!base.empty()) cells.emplace_back("base", base);
  const bool has_scenario = base.empty() && !run.scenario.empty();  // in which the overrides are
  if (has_scenario) add_cells(parse_yaml(run.scenario, run.file), "", cells);
  for (const std::string& text : has_scenario ? std::vector<std::string>() : overrides) {
    const Override override = parse_override(text);
    cells.emplace_back(override.key, std::string(trim(override.value)));
  }
  const auto* const column =
      std::ranges::find(log_columns, run.quantity, &std::pair<LogQuantity, MeasuredQuantity>::first);
  cells.emplace_back(fmt::format("measured.{}", name(column->second)), run.quantity == LogQuantity::time
                                                                           ? fmt::format("{:.6g} s", run.median)
                                                                           : fmt::format("{:.6g}", run.median));
  if (run.memory) cells.emplace_back("measured.memory_per_gpu", fmt::format("{:.0f} B", *run.memory));
  cells.emplace_back("source", fmt::format("{} log {}: median of {}", run.format, file_stem(named_file), run.text()));
  return cells;
}

/// `end`: of what announces the settings.
std::string scenario_of_head(const ImportInput& input, HeadTool tool, std::size_t end) {
  if (tool == HeadTool::deepspeed) return import_deepspeed(json_at(input, end - 1));
  const bool megatron = tool == HeadTool::megatron;
  Settings settings = megatron ? Settings(megatron_arguments(input, end)) : torchtitan_arguments(input, end - 1);
  settings.ignore("");  // hundreds of defaults, which say nothing
  return megatron ? megatron_scenario(input, std::move(settings), "megatron")
                  : torchtitan_scenario(input, std::move(settings));
}

}  // namespace

LoggedRun read_log_or_trace(const ImportInput& input) {
  if (input.text.find("\"traceEvents\"") == std::string::npos) return read_training_log(input);
  const KinetoSummary trace = summarise_kineto(input.text, input.file);
  if (!trace.steps_marked) {
    throw ScenarioError({input.file, 0, 0}, "traceEvents", "no steps are marked",
                        "a trace with a schedule, or of prof.step() after each step");
  }
  LoggedRun run;
  run.file = input.file;
  run.format = "PyTorch profiler";
  run.median = run.slowest_tenth = trace.step.value();
  run.steps = static_cast<std::size_t>(trace.steps);
  return run;
}

std::string scenario_at_head(const ImportInput& input) {
  for (const HeadRow& row : head_rows) {
    const std::size_t place = input.text.find(row.text);
    if (place == std::string::npos) continue;
    std::string scenario = scenario_of_head(input, row.tool, place + row.text.size());
    const std::size_t kind = scenario.find(name(row.tool));  // "# Written by `foretrain import megatron …"
    if (kind != std::string::npos) scenario.replace(kind, name(row.tool).size(), "log");
    return scenario;
  }
  return "";
}

bool assumes(const std::string& scenario, std::string_view key) {
  if (scenario.empty()) return false;
  const YamlNode document = parse_yaml(scenario, "scenario.yaml");
  const YamlEntry* assumed = document.find("assumed");
  return assumed != nullptr && assumed->value.find(key) != nullptr;
}

std::string assumed_machine(std::span<const LoggedRun> runs) {
  std::vector<const LoggedRun*> assuming;
  for (const LoggedRun& run : runs) {
    if (assumes(run.scenario, "cluster.node")) assuming.push_back(&run);
  }
  if (assuming.empty()) return "";
  const std::string others = assuming.size() == 1 ? "" : fmt::format(" and {} more", assuming.size() - 1);
  const YamlNode document = parse_yaml(assuming[0]->scenario, assuming[0]->file);
  const YamlNode* node = document.at("cluster.node");
  return fmt::format("{}{}: the machine is assumed to be {}; --set cluster.node=NAME states it", assuming[0]->file,
                     others, node == nullptr ? "the usual one" : flow_text(*node));
}

std::string log_table(std::span<const LoggedRun> runs, const std::string& base,
                      const std::vector<std::string>& overrides) {
  std::vector<Cells> rows;
  for (const LoggedRun& run : runs) rows.push_back(cells_of(run, base, overrides));
  std::string text = table_of(rows);
  const std::vector<Case> cases = read_cases_text(text, "the table");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    try {
      if (!base.empty() || !runs[i].scenario.empty()) scenario_of(cases[i]);
    } catch (const ScenarioError& error) {
      throw ScenarioError({runs[i].file, 0, 0}, error.key(), error.got(), error.expected());
    }
  }
  return text;
}

std::string import_log(const ImportInput& input) {
  LoggedRun run = read_training_log(input);
  if (input.scenario.empty()) run.scenario = scenario_at_head(input);
  return log_table(std::span(&run, 1), input.scenario, input.overrides);
}

}  // namespace foretrain
