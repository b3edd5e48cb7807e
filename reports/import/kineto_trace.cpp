#include "reports/import/kineto_trace.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "model/base/text.hpp"
#include "model/scenario/yaml_document.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/kineto_events.hpp"

namespace foretrain {

namespace {

struct NameRow {
  std::string_view part;
  KernelKind kind;
};

KernelKind first_match(std::span<const NameRow> rows, std::string_view name, KernelKind otherwise) {
  const std::string lower = to_lower(name);
  const auto row =
      std::ranges::find_if(rows, [&](const NameRow& r) { return lower.find(r.part) != std::string::npos; });
  return row == rows.end() ? otherwise : row->kind;
}

/// By the names that libraries and compilers give their kernels.
KernelKind kind_of_kernel(std::string_view name) {
  using enum KernelKind;
  static constexpr NameRow rows[] = {
#define KERNEL(part, kind) {part, kind},
#include "reports/import/kernel_names.def"
  };
  return first_match(rows, name, other);
}

/// The same of PyTorch's operators on processors ("aten::addmm").
KernelKind kind_of_operator(std::string_view name) {
  using enum KernelKind;
  static constexpr NameRow rows[] = {
#define OPERATOR(part, kind) {part, kind},
#include "reports/import/kernel_names.def"
  };
  return first_match(rows, name, elementwise);
}

struct Window {
  double from = 0.0, to = 0.0;
  int steps = 1;
  bool marked = false;
};

Window window_of(const std::vector<TraceEvent>& events, const std::vector<const TraceEvent*>& work) {
  std::vector<const TraceEvent*> marks;
  std::set<std::string_view> steps;
  for (const TraceEvent& event : events) {
    if (!event.name.starts_with("ProfilerStep") || event.category.starts_with("gpu")) continue;
    marks.push_back(&event);
    steps.insert(event.name);
  }
  const std::vector<const TraceEvent*>& all = marks.empty() ? work : marks;
  Window window{all.front()->start, all.front()->end(), std::max(static_cast<int>(steps.size()), 1), !marks.empty()};
  for (const TraceEvent* event : all) {
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

KernelKind kind_of_work(const TraceEvent& event) {
  if (event.category != "kernel") return KernelKind::copy;
  if (event.collective) {
    std::string name = event.collective->name;
    std::erase(name, '_');
    const KernelKind kind = kind_of_kernel(name == "allgatherbase" ? "allgather" : name);
    if (is_communication(kind)) return kind;
  }
  return kind_of_kernel(event.name);
}

/// Causes of an idle device: the host where it launched the next kernel later than the one before had
/// ended, or the data loader for as long as the host waited for it; else what the next kernel depends on.
class IdleCauses {
 public:
  explicit IdleCauses(const std::vector<TraceEvent>& events) {
    for (const TraceEvent& event : events) {
      const bool launch = event.category.starts_with("cuda_") || event.category == "runtime";
      if (launch && event.correlation >= 0.0) launched_[event.correlation] = event.end();
      if (event.name.find("DataLoader") != std::string::npos && event.category != "python_function") {
        loading_.emplace_back(event.start, event.end());
      }
    }
  }

  /// `next`: the kernel that ends the rest; nullptr at the window's end.
  void add(double from, double to, const TraceEvent* next, IdleTime& idle) const {
    double loader = 0.0;
    for (const auto& [start, end] : loading_) loader += std::max(0.0, std::min(end, to) - std::max(start, from));
    loader = std::min(loader, to - from);
    const auto launch = next == nullptr ? launched_.end() : launched_.find(next->correlation);
    const bool described = !launched_.empty() && (next == nullptr || launch != launched_.end());
    const bool late = next == nullptr || (described && launch->second > from);
    Seconds& rest = !described ? idle.unknown : late ? idle.host : idle.dependency;
    rest += Seconds((to - from - loader) * 1e-6);
    idle.loader += Seconds(loader * 1e-6);
  }

 private:
  std::unordered_map<double, double> launched_;  ///< end of a launch, by its correlation
  std::vector<std::pair<double, double>> loading_;
};

/// Each moment belongs to one event of those that run: to kernels before collectives, these before copies, and to the
/// first that began; so that all add up to the window.
void add_kernels(const std::vector<const TraceEvent*>& work, const Window& window, const IdleCauses& causes,
                 KinetoSummary& summary) {
  struct Moment {
    double at;
    bool begins;
    std::size_t event;
  };
  std::vector<Moment> moments;
  std::vector<KernelKind> kinds(work.size());
  std::unordered_map<std::string_view, KernelKind> known_names;
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (work[i]->start < window.from || work[i]->start > window.to) continue;
    const auto [known, is_new] = known_names.try_emplace(work[i]->name, KernelKind::other);
    if (is_new || work[i]->collective) known->second = kind_of_work(*work[i]);
    kinds[i] = known->second;
    summary.kernels[kinds[i]].time += Seconds(work[i]->duration * 1e-6);
    summary.kernels[kinds[i]].count += 1.0;
    if (is_communication(kinds[i])) {
      const CollectiveArguments arguments = work[i]->collective.value_or(CollectiveArguments());
      summary.collectives.push_back({kinds[i], Bytes(arguments.bytes), arguments.ranks, arguments.group,
                                     arguments.group_ranks, Seconds(work[i]->duration * 1e-6)});
    }
    const double end = std::min(work[i]->end(), window.to);
    if (end <= work[i]->start) continue;
    moments.push_back({work[i]->start, true, i});
    moments.push_back({end, false, i});
  }
  std::ranges::stable_sort(moments, {}, [](const Moment& m) { return std::pair(m.at, m.begins); });
  const auto weight = [&](std::size_t i) {
    return std::tuple(kinds[i] == KernelKind::copy ? 2 : is_communication(kinds[i]) ? 1 : 0, work[i]->start, i);
  };
  std::set<std::tuple<int, double, std::size_t>> running;
  double now = window.from;
  for (const Moment& moment : moments) {
    if (moment.at > now && running.empty()) causes.add(now, moment.at, work[moment.event], summary.idle_by);
    if (moment.at > now && !running.empty()) {
      summary.kernels[kinds[std::get<2>(*running.begin())]].alone += Seconds((moment.at - now) * 1e-6);
    }
    now = std::max(now, moment.at);
    if (moment.begins) {
      running.insert(weight(moment.event));
    } else {
      running.erase(weight(moment.event));
    }
  }
  if (window.to > now) causes.add(now, window.to, nullptr, summary.idle_by);
  for (const auto& [kind, kernels] : summary.kernels) {
    if (is_communication(kind)) summary.exposed_communication += kernels.alone;
  }
  summary.idle = summary.idle_by.total();
}

/// A list of kernels as validate/pytorch/one_step.py writes it: name, launches in a step, seconds, operator, shapes.
/// It does not contain the time of the step.
std::optional<KinetoSummary> summary_of_list(const std::string& text, const std::string& file) {
  constexpr std::string_view mark = "\"kernels of a step\"";
  if (std::string_view(text).substr(0, 100).find(mark) == std::string_view::npos) return std::nullopt;
  KinetoSummary summary;
  summary.on_device = summary.steps_marked = true;
  summary.step_known = false;
  try {
    const nlohmann::json list = nlohmann::json::parse(text);
    for (const auto& row : list.at("kernels")) {
      TracedKernels& kernels = summary.kernels[kind_of_kernel(row.at(0).get<std::string>())];
      kernels.count += row.at(1).get<double>();
      kernels.time += Seconds(row.at(2).get<double>());
      kernels.alone = kernels.time;
      summary.step += Seconds(row.at(2).get<double>());
    }
  } catch (const nlohmann::json::exception& error) {
    refuse_json(error, text, file, "kernels of a step as one_step.py writes them");
  }
  return summary;
}

}  // namespace

KinetoSummary summarise_kineto(const std::string& text, const std::string& file) {
  if (std::optional<KinetoSummary> listed = summary_of_list(text, file)) return *std::move(listed);
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
    add_kernels(work, window, IdleCauses(events), summary);
  } else {
    add_operators(work, window, summary);
  }
  const double steps = summary.steps;
  summary.step = Seconds((window.to - window.from) * 1e-6 / steps);
  summary.exposed_communication = summary.exposed_communication / steps;
  summary.idle = summary.idle / steps;
  for (Seconds* part :
       {&summary.idle_by.host, &summary.idle_by.loader, &summary.idle_by.dependency, &summary.idle_by.unknown}) {
    *part = *part / steps;
  }
  for (auto& [kind, kernel] : summary.kernels) {
    const Seconds alone = summary.on_device ? kernel.alone : kernel.time;
    kernel = {kernel.time / steps, kernel.count / steps, alone / steps};
  }
  return summary;
}

}  // namespace foretrain
