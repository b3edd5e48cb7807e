#include "reports/import/kineto_events.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <utility>

#include "model/base/text.hpp"
#include "model/scenario/yaml_document.hpp"
#include "reports/import/importer.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->is_array() ? found->dump() : "";
}
double number(const json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

/// Bytes of PyTorch's types ("BFloat16", "float32"); 0 for others.
double bytes_of_type(const std::string& type) {
  static constexpr std::pair<std::string_view, double> sizes[] = {
      {"float8", 1.0}, {"bfloat16", 2.0}, {"float16", 2.0}, {"half", 2.0},  {"double", 8.0},
      {"64", 8.0},     {"long", 8.0},     {"float", 4.0},   {"int8", 1.0},  {"byte", 1.0},
      {"char", 1.0},   {"bool", 1.0},     {"int16", 2.0},   {"short", 2.0}, {"int", 4.0}};
  const std::string lower = to_lower(type);
  for (const auto& [part, bytes] : sizes) {
    if (lower.find(part) != std::string::npos) return bytes;
  }
  return 0.0;
}

/// Arguments that PyTorch from 2.3 on records of NCCL kernels.
CollectiveArguments collective_of(const json& arguments) {
  const double elements = std::max(number(arguments, "In msg nelems", 0.0), number(arguments, "Out msg nelems", 0.0));
  const double ranks = number(arguments, "Group size", 0.0);
  CollectiveArguments one{.name = text(arguments, "Collective name"),
                          .group = text(arguments, "Process Group Name") + text(arguments, "Process Group Ranks"),
                          .group_ranks = text(arguments, "Process Group Ranks"),
                          .bytes = elements * bytes_of_type(text(arguments, "dtype"))};
  if (ranks >= 1.0 && ranks < 1e9) one.ranks = static_cast<int>(ranks);
  return one;
}

/// Nothing of what is no complete event.
std::optional<TraceEvent> event_of(const json& event) {
  TraceEvent one{.name = text(event, "name"), .category = to_lower(text(event, "cat"))};
  for (const char* key : {"pid", "tid"}) one.thread += (event.contains(key) ? event[key].dump() : "") + "/";
  one.start = number(event, "ts", one.start);
  one.duration = number(event, "dur", one.duration);
  if (const auto arguments = event.find("args"); arguments != event.end() && arguments->is_object()) {
    const double device = number(*arguments, "device", 0.0);
    if (device >= 0.0 && device < 1e6) one.device = static_cast<int>(device);
    one.correlation = number(*arguments, "correlation", -1.0);
    if (arguments->contains("Collective name")) one.collective = collective_of(*arguments);
  }
  const bool complete =
      text(event, "ph") == "X" && one.duration >= 0.0 && one.duration < 1e15 && std::abs(one.start) < 1e18;
  return complete ? std::optional(std::move(one)) : std::nullopt;
}

}  // namespace

// Events of the list, which is all of the trace or its "traceEvents". Reads them one by one, since whole trees of
// traces are large.
std::vector<TraceEvent> read_events(const std::string& text, const std::string& file) {
  using When = json::parse_event_t;
  std::vector<TraceEvent> events;
  bool has_list = false, named = false;
  int depth_of_events = -1;
  const auto take = [&](int depth, When when, const json& parsed) {
    if (depth > static_cast<int>(deepest_nesting)) {
      throw ScenarioError({file, 0, 0}, "", fmt::format("nested deeper than {} levels", deepest_nesting),
                          "a trace as the profiler wrote it");
    }
    if (when == When::key && depth == 1) named = parsed == "traceEvents";
    if (when == When::array_start && (depth == 0 || (depth == 1 && named && depth_of_events < 0))) {
      depth_of_events = depth + 1;
      has_list = true;
    }
    if (when == When::array_end && depth + 1 == depth_of_events) depth_of_events = -1;
    if (when != When::object_end || depth != depth_of_events) return true;
    if (std::optional<TraceEvent> event = event_of(parsed)) events.push_back(std::move(*event));
    return false;
  };
  try {
    [[maybe_unused]] const json rest = json::parse(text, take);
  } catch (const json::exception& error) {
    refuse_json(error, text, file, "a trace as the profiler wrote it, to its end");
  }
  if (!has_list) throw ScenarioError({file, 0, 0}, "traceEvents", "no list of events", "a trace of torch.profiler");
  return events;
}

}  // namespace foretrain
