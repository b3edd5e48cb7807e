#include "validate/fit/raw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "validate/fit/replay_records.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

constexpr std::array<const char*, 5> units = {"s", "B/s", "1/s", "FLOP/s", "1"};
constexpr const char* record_remedy =
    "delete the line, or run `foretrain-gpu measure -o` on the folder again, which measures what is missing";
// A collective suite over many GPU counts takes some megabytes; no folder of measurements comes near this.
constexpr std::uintmax_t largest_records = 256'000'000;

/// What is wrong with a record, without its place.
struct Wrong {
  std::string key, got, expected;
};

const json& member(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw Wrong{key, "this key is missing", record_remedy};
  return *found;
}

std::string text_of(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_string()) throw Wrong{key, "no text", record_remedy};
  return value;
}

std::map<std::string, std::string> texts_of(const json& object, const char* key) {
  std::map<std::string, std::string> texts;
  const auto found = object.find(key);
  if (found == object.end()) return texts;
  if (!found->is_object()) throw Wrong{key, "no object", "{ \"key\": \"text\", … }"};
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string()) throw Wrong{std::string(key) + "." + name, "no text", "a text as a scenario states it"};
    texts[name] = value;
  }
  return texts;
}

RecordStatus status_of(const json& object) {
  const std::string word = text_of(object, "status");
  const auto status = foretrain::status_of(word);
  if (!status) throw Wrong{"status", fmt::format("unknown status \"{}\"", word), "measured, failed or skipped"};
  return *status;
}

std::vector<double> values_of(const json& object) {
  std::vector<double> values;
  const json& list = member(object, "values");
  if (!list.is_array()) throw Wrong{"values", "no list", "a list of numbers"};
  for (const json& value : list) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) throw Wrong{"values", "no number", record_remedy};
    values.push_back(value);
  }
  return values;
}

/// What is said of the device: clocks, power, reasons for lower clocks.
std::optional<DeviceState> state_of(const json& object) {
  const auto found = object.find("state");
  if (found == object.end() || !found->is_object()) return std::nullopt;
  DeviceState state;
  if (found->contains("sm_mhz") && (*found)["sm_mhz"].is_number()) state.sm_mhz = (*found)["sm_mhz"];
  if (found->contains("power_w") && (*found)["power_w"].is_number()) state.power_w = (*found)["power_w"];
  if (const auto reasons = found->find("throttle"); reasons != found->end() && reasons->is_array()) {
    for (const json& reason : *reasons) {
      if (reason.is_string()) state.throttle.push_back(reason);
    }
  }
  return state;
}

/// A measured point must have values, and what the model is to predict must be longer than nothing.
void require_measured(const Record& record) {
  if (record.values.empty()) throw Wrong{"values", "measured, but without a value", record_remedy};
  if (std::find(units.begin(), units.end(), record.unit) == units.end()) {
    throw Wrong{"unit", fmt::format("unknown unit \"{}\"", record.unit), "s, B/s, 1/s, FLOP/s or 1"};
  }
  if (!record.scenario.empty() && *std::min_element(record.values.begin(), record.values.end()) <= 0.0) {
    throw Wrong{"values", "a measurement that is not positive", record_remedy};
  }
}

Record record_of(const json& object) {
  if (!object.is_object()) throw Wrong{"", "no record", record_remedy};
  Record record;
  record.suite = text_of(object, "suite");
  record.name = text_of(object, "name");
  record.status = status_of(object);
  record.scenario = texts_of(object, "scenario");
  record.parameters = texts_of(object, "parameters");
  if (object.contains("device") && object["device"].is_number()) record.device = object["device"];
  if (object.contains("note")) record.note = text_of(object, "note");
  if (record.status != RecordStatus::measured) return record;
  record.unit = text_of(object, "unit");
  record.values = values_of(object);
  record.state = state_of(object);
  require_measured(record);
  return record;
}

RawPoint point_of(const std::string& line, const SourcePosition& where) {
  try {
    return {record_of(json::parse(line)), where};
  } catch (const json::exception&) {
    throw ScenarioError(where, "", "this line is torn or no JSON", record_remedy);
  } catch (const Wrong& wrong) {
    throw ScenarioError(where, wrong.key, wrong.got, wrong.expected);
  }
}

/// Single-GPU suites run on one GPU, which need not be number 0; what is said of "the GPU" is said of that one.
void move_measured_gpu_to_front(RawMeasurements& raw) {
  if (raw.points.empty()) return;
  const auto measured = std::find_if(raw.machine.gpus.begin(), raw.machine.gpus.end(), [&](const MeasuredGpu& gpu) {
    return gpu.index == raw.points.front().record.device;
  });
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
         (stem == step_suite || std::find(gpu_suites.begin(), gpu_suites.end(), stem) != gpu_suites.end());
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

/// Points in the order in which they were first met, each as it was last.
class PointList {
 public:
  void add(std::vector<RawPoint> points) {
    for (RawPoint& point : points) {
      const auto [place, is_new] = known_.emplace(std::pair(point.record.suite, point.record.name), points_.size());
      if (is_new) {
        points_.push_back(std::move(point));
      } else {
        points_[place->second] = std::move(point);
      }
    }
  }
  std::vector<RawPoint> take() && { return std::move(points_); }

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> known_;
  std::vector<RawPoint> points_;
};

void count(const RawPoint& point, SuiteCount& suite) {
  if (point.record.status == RecordStatus::measured) ++suite.measured;
  if (point.record.status == RecordStatus::failed) ++suite.failed;
  if (point.record.status == RecordStatus::skipped) ++suite.skipped;
}

}  // namespace

double RawPoint::median() const { return Sampled{record.values}.median(); }

double RawPoint::spread() const { return Sampled{record.values}.spread(); }

bool RawPoint::throttled() const {
  if (!record.state) return false;
  return std::any_of(record.state->throttle.begin(), record.state->throttle.end(), [](const std::string& reason) {
    return reason == "thermal" || reason == "hardware_thermal" || reason == "power_brake" || reason == "hardware";
  });
}

std::optional<bool> RawPoint::power_limited() const {
  if (!record.state) return std::nullopt;
  return std::find(record.state->throttle.begin(), record.state->throttle.end(), "power") !=
         record.state->throttle.end();
}

bool RawPoint::held_out() const {
  const std::string word = parameter("held_out");
  return !word.empty() && word != "false" && word != "no" && word != "0";
}

std::string RawPoint::parameter(const std::string& key) const {
  const auto found = record.parameters.find(key);
  return found == record.parameters.end() ? "" : found->second;
}

std::vector<const RawPoint*> RawMeasurements::of_suite(const std::string& suite) const {
  std::vector<const RawPoint*> found;
  for (const RawPoint& point : points) {
    if (point.record.suite == suite) found.push_back(&point);
  }
  return found;
}

std::vector<RawPoint> read_records(std::string_view text, const std::string& file) {
  PointList points;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (!trim(line).empty()) points.add({point_of(line, {file, number, 1})});
  }
  return std::move(points).take();
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
  PointList points;
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
    for (const std::filesystem::path& file : files) points.add(points_of(file));
  }
  for (RawPoint& point : std::move(points).take()) {
    count(point, raw.suites[point.record.suite]);
    if (point.record.status == RecordStatus::measured) raw.points.push_back(std::move(point));
  }
  move_measured_gpu_to_front(raw);
  return raw;
}

}  // namespace foretrain
