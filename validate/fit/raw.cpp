#include "validate/fit/raw.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

constexpr std::array<const char*, 5> units = {"s", "B/s", "1/s", "FLOP/s", "1"};
// A collective suite over many GPU counts takes some megabytes; no folder of measurements comes near this.
constexpr std::uintmax_t largest_records = 256'000'000;

/// State of the device: clocks, power, throttle reasons.
std::optional<DeviceState> state_of(const json& object) {
  const auto found = object.find("state");
  if (found == object.end() || found->is_null()) return std::nullopt;
  DeviceState state;
  state.sm_mhz = found->value("sm_mhz", 0.0);
  if (found->contains("power_w")) state.power_w = found->at("power_w").get<double>();
  state.throttle = found->value("throttle", std::vector<std::string>());
  return state;
}

/// A measured point must have values, and what the model is to predict must be longer than nothing.
void require_measured(const Record& record) {
  if (record.values.empty()) throw std::invalid_argument("measured, but without a value");
  if (std::ranges::find(units, record.unit) == units.end()) {
    throw std::invalid_argument(fmt::format("unknown unit \"{}\"", record.unit));
  }
  const bool finite = std::ranges::all_of(record.values, [](double value) { return std::isfinite(value); });
  if (!finite || (!record.scenario.empty() && std::ranges::min(record.values) <= 0.0)) {
    throw std::invalid_argument("a measurement that is not positive");
  }
}

using Texts = std::map<std::string, std::string>;

Record record_of(const json& object) {
  Record record;
  record.suite = object.at("suite");
  record.name = object.at("name");
  const std::string status = object.at("status");
  if (!status_of(status)) throw std::invalid_argument(fmt::format("unknown status \"{}\"", status));
  record.status = *status_of(status);
  record.scenario = object.value("scenario", Texts());
  record.parameters = object.value("parameters", Texts());
  record.device = object.value("device", 0);
  record.note = object.value("note", std::string());
  if (record.status != RecordStatus::measured) return record;
  record.unit = object.at("unit");
  record.values = object.at("values").get<std::vector<double>>();
  record.state = state_of(object);
  require_measured(record);
  return record;
}

RawPoint point_of(const std::string& line, const SourcePosition& where) {
  try {
    return {record_of(json::parse(line)), where};
  } catch (const std::exception& error) {
    throw ScenarioError(
        where, "", fmt::format("no record ({})", error.what()),
        "delete the line, or run `foretrain-gpu measure -o` on the folder again, which measures what is missing");
  }
}

/// A kernel of a replay's block of several, with the operator as a scenario states it; `traffic` as foretrain-gpu knows
/// it.
Record kernel_record(const json& work, const std::string& graph) {
  Record record;
  record.suite = replay_suite;
  record.name = fmt::format("{}: {} {}, {}", graph, work.at("block").get<std::string>(),
                            work.at("work_number").get<int>(), work.at("name").get<std::string>());
  record.scenario["workload.operator.kind"] = work.at("kind").get<std::string>();
  for (const auto& [key, value] : work.at("fields").items()) record.scenario["workload.operator." + key] = value;
  record.parameters = {{"graph", graph}, {"tasks", fmt::format("{}", work.at("tasks").get<int>())}};
  record.unit = "s";
  const int count = work.at("count");
  if (count < 1) {
    throw std::invalid_argument(fmt::format("a kernel of {} was measured without being run", graph));
  }
  record.values = {work.at("measured_s").get<double>() / count};
  return record;
}

Record whole_record(const json& document, const std::string& graph) {
  Record record;
  record.suite = replay_suite;
  record.name = graph;
  record.status = document.at("status") == "skipped" ? RecordStatus::skipped : RecordStatus::failed;
  record.note = fmt::format("{}", fmt::join(document.at("notes").get<std::vector<std::string>>(), "; "));
  return record;
}

bool is_replay_file(const std::filesystem::path& file) {
  return file.extension() == ".json" && file.filename().string().starts_with("replay-");
}

/// Results of foretrain-gpu replay (validate/replay/result.hpp), in the words of suites.
std::vector<RawPoint> replay_records(std::string_view text, const std::string& file) {
  const SourcePosition where{file, 1, 1};
  try {
    const json document = json::parse(text);
    const std::string graph = document.at("name");
    if (document.at("status") != "measured") return {{whole_record(document, graph), where}};
    std::vector<RawPoint> points;
    for (const json& work : document.at("work")) {
      if (!work.contains("kind") || work.at("measured_s").get<double>() <= 0.0) continue;  // no kernel, or of no work
      points.push_back({kernel_record(work, graph), where});
      points.back().record.state = state_of(document);
    }
    return points;
  } catch (const std::exception& error) {
    throw ScenarioError(where, "", fmt::format("no replay of a task graph ({})", error.what()),
                        "a file replay-NAME.json that foretrain-gpu replay wrote; delete it, or replay it again");
  }
}

/// Single-GPU suites run on one GPU, which need not be number 0; what is said of "the GPU" is said of that one.
void move_measured_gpu_to_front(RawMeasurements& raw) {
  if (raw.points.empty()) return;
  const auto measured = std::ranges::find_if(
      raw.machine.gpus, [&](const MeasuredGpu& gpu) { return gpu.index == raw.points.front().record.device; });
  if (measured != raw.machine.gpus.end()) std::iter_swap(raw.machine.gpus.begin(), measured);
}

void require_folder(const std::filesystem::path& folder) {
  if (std::filesystem::is_directory(folder)) return;
  throw ScenarioError({folder.string(), 0, 0}, "", "no folder", "a folder that validate/on_gpu.sh wrote");
}

/// Drivers and dates may differ between parts; the GPUs may not.
void require_same(const Machine& first, const Machine& other, const std::filesystem::path& file) {
  const auto names = [](const Machine& machine) {
    std::string text;
    for (const MeasuredGpu& gpu : machine.gpus) text += (text.empty() ? "" : ", ") + gpu.name;
    return text;
  };
  if (names(first) == names(other)) return;
  throw ScenarioError({file.string(), 0, 0}, "gpus", fmt::format("measurements of another machine ({})", names(other)),
                      fmt::format("parts of one machine ({})", names(first)));
}

bool is_of_records(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  return file.extension() == ".jsonl" &&
         (stem == step_suite || std::ranges::find(gpu_suites, stem) != gpu_suites.end());
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (is_of_records(entry.path()) || is_replay_file(entry.path())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<RawPoint> points_of(const std::filesystem::path& file) {
  const std::string text = read_text_file(file, largest_records);
  return is_replay_file(file) ? replay_records(text, file.string()) : read_records(text, file.string());
}

/// Each point where it was first met, as it was last.
std::vector<RawPoint> last_of_each(std::vector<RawPoint> points) {
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  std::vector<RawPoint> kept;
  for (RawPoint& point : points) {
    const auto [place, is_new] = known.emplace(std::pair(point.record.suite, point.record.name), kept.size());
    if (is_new) kept.emplace_back();
    kept[place->second] = std::move(point);
  }
  return kept;
}

void count(const RawPoint& point, SuiteCount& suite) {
  if (point.record.status == RecordStatus::measured) ++suite.measured;
  if (point.record.status == RecordStatus::failed) ++suite.failed;
  if (point.record.status == RecordStatus::skipped) ++suite.skipped;
}

std::string text_at(const Texts& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? "" : found->second;
}

}  // namespace

double RawPoint::median() const { return Sampled{record.values}.median(); }

double RawPoint::spread() const { return Sampled{record.values}.spread(); }

bool RawPoint::throttled() const {
  static const std::set<std::string> lowered = {"thermal", "hardware_thermal", "power_brake", "hardware"};
  return record.state && std::ranges::any_of(record.state->throttle, [](const auto& r) { return lowered.contains(r); });
}

std::optional<bool> RawPoint::power_limited() const {
  if (!record.state) return std::nullopt;
  return std::ranges::find(record.state->throttle, "power") != record.state->throttle.end();
}

bool RawPoint::held_out() const {
  const std::string word = parameter("held_out");
  return !word.empty() && word != "false" && word != "no" && word != "0";
}

std::string RawPoint::workload(const std::string& key) const { return text_at(record.scenario, "workload." + key); }

std::string RawPoint::parameter(const std::string& key) const { return text_at(record.parameters, key); }

std::vector<const RawPoint*> RawMeasurements::of_suite(const std::string& suite) const {
  std::vector<const RawPoint*> found;
  for (const RawPoint& point : points) {
    if (point.record.suite == suite) found.push_back(&point);
  }
  return found;
}

std::vector<RawPoint> read_records(std::string_view text, const std::string& file) {
  std::vector<RawPoint> points;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (!trim(line).empty()) points.push_back(point_of(line, {file, number, 1}));
  }
  return last_of_each(std::move(points));
}

double RawPoint::number(const std::string& key) const {
  const std::string text = parameter(key);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end != '\0' || !std::isfinite(value) ? 0.0 : value;
}

RawMeasurements read_measurements(const std::filesystem::path& folder) {
  return read_measurements(std::vector{folder});
}

RawMeasurements read_measurements(const std::vector<std::filesystem::path>& folders) {
  RawMeasurements raw;
  std::vector<RawPoint> points;
  for (const std::filesystem::path& folder : folders) {
    require_folder(folder);
    Machine machine = read_machine(folder / "machine.json");
    if (raw.machine.gpus.empty()) {
      raw.machine = std::move(machine);
    } else {
      require_same(raw.machine, machine, folder / "machine.json");
    }
    const std::vector<std::filesystem::path> files = files_of(folder);
    if (files.empty() && folders.size() == 1) {
      throw ScenarioError({folder.string(), 0, 0}, "", "no records",
                          "SUITE.jsonl, steps.jsonl or replay-*.json files that validate/on_gpu.sh wrote");
    }
    for (const std::filesystem::path& file : files) {
      for (RawPoint& point : points_of(file)) points.push_back(std::move(point));
    }
  }
  for (RawPoint& point : last_of_each(std::move(points))) {
    count(point, raw.suites[point.record.suite]);
    if (point.record.status == RecordStatus::measured) raw.points.push_back(std::move(point));
  }
  move_measured_gpu_to_front(raw);
  return raw;
}

}  // namespace foretrain
