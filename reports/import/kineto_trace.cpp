#include "reports/import/kineto_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "model/base/text.hpp"
#include "reports/import/draft.hpp"

namespace foretrain {

namespace {

/// An event of the Trace Event Format; times in microseconds.
struct TraceEvent {
  std::string name, category, thread;
  int device = 0;
  double start = 0.0, duration = -1.0;
  [[nodiscard]] double end() const { return start + duration; }
};

/// Reads events one by one: traces are larger than memory should be filled with their trees.
class TraceReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  TraceReader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  std::vector<TraceEvent> events;
  bool has_list = false;

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t value) override { return take(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return take(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return take(value); }
  bool binary(binary_t& /*value*/) override { return true; }
  bool key(string_t& value) override {
    key_ = value;
    if (depth_ == event_depth_) event_key_ = value;
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ != event_depth_) return true;
    if (key_ == "name") event_.name = value;
    if (key_ == "cat") event_.category = to_lower(value);
    if (key_ == "ph") phase_ = value;
    if (key_ == "tid" || key_ == "pid") event_.thread += value + "/";
    return true;
  }

  bool start_object(std::size_t /*size*/) override {
    ++depth_;
    if (list_depth_ > 0 && depth_ == list_depth_ + 1) {
      event_depth_ = depth_;
      event_ = {};
      phase_.clear();
    }
    return true;
  }

  bool end_object() override {
    if (depth_ == event_depth_) {
      event_depth_ = 0;
      const bool complete = phase_ == "X" && event_.duration >= 0.0 && event_.duration < 1e15;
      if (complete && std::abs(event_.start) < 1e18) events.push_back(std::move(event_));
    }
    --depth_;
    return true;
  }

  bool start_array(std::size_t /*size*/) override {
    ++depth_;
    if (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents")) {
      list_depth_ = depth_;
      has_list = true;
    }
    return true;
  }

  bool end_array() override {
    if (depth_ == list_depth_) list_depth_ = 0;
    --depth_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& /*error*/) override {
    const std::size_t start = position > token.size() ? position - token.size() : 0;
    throw ScenarioError(position_in(text_, std::min(start, text_.size()), file_), "", "this is no JSON",
                        "a trace as the profiler wrote it, to its end");
  }

 private:
  bool take(double value) {
    if (depth_ == event_depth_) {
      if (key_ == "ts") event_.start = value;
      if (key_ == "dur") event_.duration = value;
      if (key_ == "tid" || key_ == "pid") event_.thread += fmt::format("{:.0f}/", value);
    }
    const bool argument = event_depth_ > 0 && depth_ == event_depth_ + 1 && event_key_ == "args";
    if (argument && key_ == "device" && value >= 0.0 && value < 1e6) event_.device = static_cast<int>(value);
    return true;
  }

  const std::string& text_;
  const std::string& file_;
  int depth_ = 0, list_depth_ = 0, event_depth_ = 0;
  std::string key_, event_key_, phase_;
  TraceEvent event_;
};

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
  TraceReader reader(text, file);
  nlohmann::json::sax_parse(text, &reader);
  const SourcePosition nowhere{file, 0, 0};
  if (!reader.has_list) throw ScenarioError(nowhere, "traceEvents", "no list of events", "a trace of torch.profiler");
  KinetoSummary summary;
  std::vector<const TraceEvent*> work;
  std::set<int> devices;
  for (const TraceEvent& event : reader.events) {
    if (is_kernel(event)) devices.insert(event.device);
  }
  summary.on_device = !devices.empty();
  summary.devices = std::max<int>(static_cast<int>(devices.size()), 1);
  for (const TraceEvent& event : reader.events) {
    const bool counts = summary.on_device ? is_kernel(event) && event.device == *devices.begin() : is_operator(event);
    if (counts) work.push_back(&event);
  }
  if (work.empty()) {
    throw ScenarioError(nowhere, "traceEvents", "neither kernels nor operators",
                        "a trace with ProfilerActivity.CUDA or ProfilerActivity.CPU");
  }
  const Window window = window_of(reader.events, work);
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
