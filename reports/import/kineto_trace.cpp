#include "reports/import/kineto_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "model/base/text.hpp"
#include "model/scenario/yaml_document.hpp"
#include "reports/import/importer.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

/// An event of the Trace Event Format; times in microseconds.
struct TraceEvent {
  std::string name, category, thread;
  int device = 0;
  double start = 0.0, duration = -1.0;
  [[nodiscard]] double end() const { return start + duration; }
};

/// Nothing of what is no complete event.
std::optional<TraceEvent> event_of(const json& event) {
  const auto text = [&](const char* key) {
    const auto found = event.find(key);
    return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto number = [](const json& object, const char* key, double otherwise) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
  };
  TraceEvent one{.name = text("name"), .category = to_lower(text("cat")), .thread = ""};
  for (const char* key : {"pid", "tid"}) one.thread += (event.contains(key) ? event[key].dump() : "") + "/";
  one.start = number(event, "ts", one.start);
  one.duration = number(event, "dur", one.duration);
  if (const auto arguments = event.find("args"); arguments != event.end()) {
    const double device = number(*arguments, "device", 0.0);
    if (device >= 0.0 && device < 1e6) one.device = static_cast<int>(device);
  }
  const bool complete = text("ph") == "X" && one.duration >= 0.0 && one.duration < 1e15 && std::abs(one.start) < 1e18;
  return complete ? std::optional(std::move(one)) : std::nullopt;
}

/// Of the list of events, which is all of the trace or its "traceEvents". Events are taken one by one: traces are
/// larger than memory should be filled with their trees. Throws ScenarioError.
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

struct NameRow {
  std::string_view part;
  KernelKind kind;
};

KernelKind first_match(std::span<const NameRow> rows, std::string_view name) {
  const std::string lower = to_lower(name);
  const auto row =
      std::ranges::find_if(rows, [&](const NameRow& r) { return lower.find(r.part) != std::string::npos; });
  return row == rows.end() ? KernelKind::elementwise : row->kind;
}

/// By the names that libraries and compilers give their kernels; elementwise where nothing else is known.
KernelKind kind_of_kernel(std::string_view name) {
  using enum KernelKind;
  static constexpr NameRow rows[] = {
#define KERNEL(part, kind) {part, kind},
#include "reports/import/kernel_names.def"
  };
  return first_match(rows, name);
}

/// The same of PyTorch's operators on processors ("aten::addmm").
KernelKind kind_of_operator(std::string_view name) {
  using enum KernelKind;
  static constexpr NameRow rows[] = {
#define OPERATOR(part, kind) {part, kind},
#include "reports/import/kernel_names.def"
  };
  return first_match(rows, name);
}

/// The length of a union of intervals inside a window.
double covered(std::vector<std::pair<double, double>> intervals, double from, double to) {
  std::ranges::sort(intervals);
  double sum = 0.0, end = from;
  for (const auto& [start, stop] : intervals) {
    const double first = std::max(start, end), last = std::min(stop, to);
    if (last <= first) continue;
    sum += last - first;
    end = last;
  }
  return sum;
}

struct Window {
  double from = 0.0, to = 0.0;
  int steps = 1;
  bool marked = false;
};

Window window_of(const std::vector<TraceEvent>& events, const std::vector<const TraceEvent*>& work) {
  Window window;
  std::set<std::string> steps;
  for (const TraceEvent& event : events) {
    if (!event.name.starts_with("ProfilerStep") || event.category.starts_with("gpu")) continue;
    if (steps.empty()) window = {event.start, event.end(), 1, true};
    steps.insert(event.name);
    window.from = std::min(window.from, event.start);
    window.to = std::max(window.to, event.end());
  }
  window.steps = std::max<int>(static_cast<int>(steps.size()), 1);
  if (window.marked) return window;
  window = {work.front()->start, work.front()->end(), 1, false};
  for (const TraceEvent* event : work) {
    window.from = std::min(window.from, event->start);
    window.to = std::max(window.to, event->end());
  }
  return window;
}

bool is_kernel(const TraceEvent& event) {
  return event.category == "kernel" || event.category == "gpu_memcpy" || event.category == "gpu_memset" ||
         event.category == "memcpy" || event.category == "memset";
}

/// Traces of builds without Kineto name no categories.
bool is_operator(const TraceEvent& event) {
  static constexpr std::array<std::string_view, 7> categories = {
      "", "cpu_op", "operator", "compute", "optimizer", "communication", "user_annotation"};
  return std::ranges::find(categories, event.category) != categories.end() && !event.name.starts_with("ProfilerStep");
}

/// Operators call others: each counts without those inside it. What an optimizer calls is the optimizer.
void add_operators(std::vector<const TraceEvent*>& work, const Window& window, KinetoSummary& summary) {
  std::ranges::sort(work, [](const TraceEvent* a, const TraceEvent* b) {
    return std::tuple(std::string_view(a->thread), a->start, -a->duration) <
           std::tuple(std::string_view(b->thread), b->start, -b->duration);
  });
  struct Open {
    const TraceEvent* event;
    KernelKind kind;
  };
  std::vector<Open> open;
  for (const TraceEvent* event : work) {
    while (!open.empty() && (open.back().event->thread != event->thread || open.back().event->end() <= event->start)) {
      open.pop_back();
    }
    if (event->start < window.from || event->start > window.to) continue;
    KernelKind kind = kind_of_operator(event->name);
    if (!open.empty()) {
      const KernelKind outer = open.back().kind;
      if (outer == KernelKind::optimizer) kind = outer;
      summary.kernels[outer].time -= Seconds(event->duration * 1e-6);
    }
    summary.kernels[kind].time += Seconds(event->duration * 1e-6);
    summary.kernels[kind].count += 1.0;
    open.push_back({event, kind});
  }
}

void add_kernels(const std::vector<const TraceEvent*>& work, const Window& window, KinetoSummary& summary) {
  std::vector<std::pair<double, double>> all, computing;
  for (const TraceEvent* event : work) {
    if (event->start < window.from || event->start > window.to) continue;
    const KernelKind kind = event->category == "kernel" ? kind_of_kernel(event->name) : KernelKind::copy;
    summary.kernels[kind].time += Seconds(event->duration * 1e-6);
    summary.kernels[kind].count += 1.0;
    all.emplace_back(event->start, event->end());
    if (kind != KernelKind::communication) computing.push_back(all.back());
  }
  const double busy = covered(std::move(all), window.from, window.to);
  summary.exposed_communication = Seconds((busy - covered(std::move(computing), window.from, window.to)) * 1e-6);
  summary.idle = Seconds((window.to - window.from - busy) * 1e-6);
}

}  // namespace

KinetoSummary summarise_kineto(const std::string& text, const std::string& file) {
  const std::vector<TraceEvent> events = read_events(text, file);
  KinetoSummary summary;
  std::vector<const TraceEvent*> work;
  std::set<int> devices;
  for (const TraceEvent& event : events) {
    if (is_kernel(event)) devices.insert(event.device);
  }
  summary.on_device = !devices.empty();
  summary.devices = std::max<int>(static_cast<int>(devices.size()), 1);
  for (const TraceEvent& event : events) {
    const bool counts = summary.on_device ? is_kernel(event) && event.device == *devices.begin() : is_operator(event);
    if (counts) work.push_back(&event);
  }
  if (work.empty()) {
    throw ScenarioError({file, 0, 0}, "traceEvents", "neither kernels nor operators",
                        "a trace with ProfilerActivity.CUDA or ProfilerActivity.CPU");
  }
  const Window window = window_of(events, work);
  summary.steps = window.steps;
  summary.steps_marked = window.marked;
  if (summary.on_device) {
    add_kernels(work, window, summary);
  } else {
    add_operators(work, window, summary);
  }
  const double steps = summary.steps;
  summary.step = Seconds((window.to - window.from) * 1e-6 / steps);
  summary.exposed_communication = summary.exposed_communication / steps;
  summary.idle = summary.idle / steps;
  for (auto& [kind, kernel] : summary.kernels) kernel = {kernel.time / steps, kernel.count / steps};
  return summary;
}

}  // namespace foretrain
