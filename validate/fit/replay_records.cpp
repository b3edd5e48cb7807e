#include "validate/fit/replay_records.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace foretrain {

namespace {

using nlohmann::json;

Record kernel_record(const json& work, const std::string& graph) {
  Record record;
  record.suite = replay_suite;
  record.name = fmt::format("{}: {} {}, {}", graph, work.at("block").get<std::string>(),
                            work.at("work_number").get<int>(), work.at("name").get<std::string>());
  record.scenario["workload.operator.kind"] = work.at("kind").get<std::string>();
  for (const auto& [key, value] : work.at("fields").items()) {
    record.scenario["workload.operator." + key] = value.get<std::string>();
  }
  record.parameters = {{"graph", graph}, {"tasks", fmt::format("{}", work.at("tasks").get<int>())}};
  record.unit = "s";
  record.values = {work.at("measured_s").get<double>() / work.at("count").get<int>()};
  return record;
}

std::optional<DeviceState> replay_state(const json& document) {
  const auto found = document.find("state");
  if (found == document.end()) return std::nullopt;
  DeviceState state;
  state.sm_mhz = found->value("sm_mhz", 0.0);
  if (found->contains("power_w")) state.power_w = found->at("power_w").get<double>();
  state.throttle = found->value("throttle", std::vector<std::string>{});
  return state;
}

Record whole_record(const json& document, const std::string& graph) {
  Record record;
  record.suite = replay_suite;
  record.name = graph;
  record.status = document.at("status") == "skipped" ? RecordStatus::skipped : RecordStatus::failed;
  for (const json& note : document.at("notes")) {
    record.note += (record.note.empty() ? "" : "; ") + note.get<std::string>();
  }
  return record;
}

}  // namespace

bool is_replay_file(const std::filesystem::path& file) {
  return file.extension() == ".json" && file.filename().string().starts_with("replay-");
}

std::vector<RawPoint> replay_records(std::string_view text, const std::string& file) {
  const SourcePosition where{file, 1, 1};
  const std::string remedy = "a file replay-NAME.json that foretrain-gpu replay wrote; delete it, or replay it again";
  try {
    const json document = json::parse(text);
    const std::string graph = document.at("name").get<std::string>();
    std::vector<RawPoint> points;
    if (document.at("status") != "measured") return {{whole_record(document, graph), where}};
    const std::optional<DeviceState> state = replay_state(document);
    for (const json& work : document.at("work")) {
      const bool is_kernel = work.contains("kind");
      if (!is_kernel || work.at("measured_s").get<double>() <= 0.0) continue;  // or one of no work
      if (work.at("count").get<int>() < 1) {
        throw ScenarioError(where, "", fmt::format("a kernel of {} was measured without being run", graph), remedy);
      }
      points.push_back({kernel_record(work, graph), where});
      points.back().record.state = state;
    }
    return points;
  } catch (const json::exception& error) {
    throw ScenarioError(where, "", fmt::format("no replay of a task graph ({})", error.what()), remedy);
  }
}

}  // namespace foretrain
