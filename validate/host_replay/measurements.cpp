#include "validate/host_replay/measurements.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kind = "host measurements";

/// Times to a tenth of a microsecond: more digits are noise.
std::vector<double> rounded_times(const std::vector<double>& seconds) {
  std::vector<double> result;
  result.reserve(seconds.size());
  for (const double value : seconds) result.push_back(std::round(value * 1e7) / 1e7);
  return result;
}

double rounded_time(Seconds time) { return rounded_times({time.value()}).front(); }

ordered_json to_value(const HostMeasurement& run) {
  ordered_json value = {{"case", run.name},
                        {"group", run.group},
                        {"ranks", run.ranks},
                        {"size_bytes", run.size.value()},
                        {"plan", run.plan},
                        {"predicted_s", run.predicted.value()},
                        {"median_s", rounded_time(run.median())},
                        {"cores_busy", std::round(run.busy * 1000.0) / 1000.0},
                        {"samples", rounded_times(run.samples)}};
  if (run.waiting && run.predicted_waiting) {
    value["waiting_s"] = rounded_time(*run.waiting);
    value["predicted_waiting_s"] = run.predicted_waiting->value();
  }
  for (const HostTask& task : run.tasks) {
    value["tasks"].push_back({task.stream, task.name, task.category, rounded_time(task.predicted_start),
                              rounded_time(task.predicted_end), rounded_time(task.start), rounded_time(task.end)});
  }
  for (const RankTask& task : run.rank_tasks) {
    value["rank_tasks"].push_back(
        {task.rank, task.name, task.category, task.sent.value(), rounded_time(task.start), rounded_time(task.end)});
  }
  return value;
}

HostMeasurement run_from(const json& value) {
  HostMeasurement run;
  run.name = value.at("case");
  run.group = value.at("group");
  run.ranks = value.at("ranks");
  run.size = Bytes(value.at("size_bytes"));
  run.plan = value.at("plan");
  run.predicted = Seconds(value.at("predicted_s"));
  run.busy = value.at("cores_busy");
  run.samples = value.at("samples").get<std::vector<double>>();
  if (run.samples.empty()) throw std::runtime_error(run.name + ": no samples");
  if (value.contains("waiting_s")) {
    run.waiting = Seconds(value.at("waiting_s"));
    run.predicted_waiting = Seconds(value.at("predicted_waiting_s"));
  }
  for (const json& task : value.value("tasks", json::array())) {
    run.tasks.push_back({task.at(0), task.at(1), task.at(2), Seconds(task.at(3)), Seconds(task.at(4)),
                         Seconds(task.at(5)), Seconds(task.at(6))});
  }
  for (const json& task : value.value("rank_tasks", json::array())) {
    run.rank_tasks.push_back(
        {task.at(0), task.at(1), task.at(2), Bytes(task.at(3)), Seconds(task.at(4)), Seconds(task.at(5))});
  }
  return run;
}

}  // namespace

HostMachine this_machine() {
  HostMachine machine;
  machine.processor = processor_name();
  machine.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.memory = Bytes(number(sysconf(_SC_PHYS_PAGES)) * number(sysconf(_SC_PAGESIZE)));
  utsname system{};
  if (uname(&system) == 0) machine.kernel = fmt::format("{} {}", system.sysname, system.release);
  machine.date = utc_date("%Y-%m-%d");
  return machine;
}

ordered_json to_value(const HostMachine& machine) {
  return {{"processor", machine.processor},
          {"cores", machine.cores},
          {"memory_bytes", machine.memory.value()},
          {"kernel", machine.kernel},
          {"date", machine.date}};
}

HostMachine machine_from(const json& value) {
  return {value.at("processor"), value.at("cores"), Bytes(value.at("memory_bytes")), value.at("kernel"),
          value.at("date")};
}

std::string describe(const HostMachine& machine) {
  return fmt::format("{} with {} cores, {}", machine.processor, machine.cores, machine.kernel);
}

Seconds HostMeasurement::median() const { return Seconds(Sampled{samples}.median()); }

double HostMeasurement::spread() const { return Sampled{samples}.spread(); }

std::string one_entry_a_line(const ordered_json& document) {
  std::string text = "{";
  const char* comma = "\n  ";
  for (const auto& [key, value] : document.items()) {
    text += fmt::format("{}\"{}\": ", comma, key);
    comma = ",\n  ";
    if (!value.is_array()) {
      text += value.dump();
      continue;
    }
    const char* separator = "[\n    ";
    for (const ordered_json& entry : value) {
      text += separator + entry.dump();
      separator = ",\n    ";
    }
    text += value.empty() ? "[\n  ]" : "\n  ]";
  }
  return text + "\n}\n";
}

void read_measured(const std::string& path, const std::string& kind, const std::string& command,
                   const std::function<void(const json&)>& take) {
  const std::string text = read_text_file(path);
  const SourcePosition where{path, 0, 0};
  const std::string expected = fmt::format("a file that `foretrain {} -o` wrote", command);
  try {
    const json document = json::parse(text);
    if (document.at("kind") != kind) throw ScenarioError(where, "kind", "no " + kind, expected);
    take(document);
  } catch (const ScenarioError&) {
    throw;
  } catch (const std::exception& error) {
    throw ScenarioError(where, "", fmt::format("no {} ({})", kind, error.what()), expected);
  }
}

std::string to_json(const HostMeasurements& measurements) {
  ordered_json document = {{"kind", kind}, {"machine", to_value(measurements.machine)}};
  document["runs"] = ordered_json::array();
  for (const HostMeasurement& run : measurements.runs) document["runs"].push_back(to_value(run));
  return one_entry_a_line(document);
}

HostMeasurements read_host_measurements(const std::string& path) {
  HostMeasurements result;
  read_measured(path, kind, "replay", [&](const json& document) {
    result.machine = machine_from(document.at("machine"));
    for (const json& run : document.at("runs")) result.runs.push_back(run_from(run));
  });
  return result;
}

std::string plan_hash(const ReplayPlan& plan) {
  const WorkerTask& task = plan.task;
  ordered_json text = {
      task.hosts, task.ranks, task.elements, task.repetitions, plan.uplinks.hosts_per_leaf, plan.uplinks.rate.value()};
  for (const std::vector<StepTask>& tasks : task.steps) {
    for (const StepTask& t : tasks) text.push_back({t.stream, t.seconds, t.exchange, t.after});
  }
  for (const Exchange& exchange : task.exchanges) {
    for (const Exchange::Phase& phase : exchange.phases) {
      text.push_back(phase.repeat);
      for (const Exchange::Message& m : phase.messages) text.push_back({m.source, m.destination, m.bytes, m.adds});
    }
  }
  for (const HostRate& host : plan.hosts) text.push_back({host.out.value(), host.in.value()});
  if (task.save_every > 0) text.push_back({task.save_every, task.save_seconds});
  for (const BackgroundTraffic& t : plan.background) text.push_back({t.from, t.to, t.rate.value()});
  return fmt::format("{:016x}", fnv_1a(text.dump()));
}

}  // namespace foretrain
