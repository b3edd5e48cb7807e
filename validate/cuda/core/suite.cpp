#include "validate/cuda/core/suite.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

constexpr int most_pauses = 4;
constexpr unsigned pause_s = 1;

bool lowered_by_heat(const std::optional<DeviceState>& state) {
  const std::set<std::string> by_heat = {"thermal", "hardware_thermal", "power_brake", "hardware"};
  return state && std::ranges::any_of(state->throttle, [&](const auto& reason) { return by_heat.contains(reason); });
}

}  // namespace

std::string SuiteTask::journal_path() const { return folder + "/" + std::string(suite->name) + ".jsonl"; }

SuiteRun::SuiteRun(const SuiteTask& task, Journal& journal, const Nvml& nvml, SuiteProgress& progress)
    : task_(task),
      deadline_(now() + (task.quick ? task.suite->quick_budget_s : task.suite->budget_s)),
      journal_(journal),
      nvml_(nvml),
      progress_(progress),
      bus_id_(bus_id_of(0)) {}

StoppingRule SuiteRun::rule() const {
  if (quick()) return {.warm_up = 1, .least = 5, .most = 30, .target = 0.01, .budget = Seconds(0.1)};
  return {.warm_up = 2, .least = 9, .most = 200, .target = 0.003, .budget = Seconds(0.6)};
}

void SuiteRun::keep(Record& record) {
  record.suite = task_.suite->name;
  journal_.append(record);
  if (record.status != RecordStatus::failed) progress_.at_work = {};
  progress_.throttled |= lowered_by_heat(record.state);
  ++progress_.signs;
}

void SuiteRun::measure_cool(Record& record, const std::function<Sampled(Record&)>& measure) {
  for (;;) {
    begin_timing();
    const Sampled sampled = measure(record);
    record.values = sampled.values;
    record.note = sampled.note;
    record.state = sampler_->finish();
    if (!lowered_by_heat(record.state) || pauses_ == most_pauses || now() + pause_s > deadline_) return;
    ++pauses_;
    sleep(pause_s);  // less where the user ends the work
    throw_if_interrupted();
  }
}

bool SuiteRun::point(Record record, const std::function<Sampled(Record&)>& measure) {
  throw_if_interrupted();
  if (journal_.has(record.name) || std::ranges::count(task_.passed_over, record.name) > 0) return true;
  if (now() > deadline_) {
    progress_.late = true;
    return false;
  }
  progress_.at_work = short_text(record.name);
  ++progress_.signs;
  try {
    measure_cool(record, measure);
    record.status = RecordStatus::measured;
    const auto usable = [](double value) { return std::isfinite(value) && value >= 0.0; };
    if (record.values.empty() || !std::ranges::all_of(record.values, usable)) {
      throw GpuError(Fault::failed, "the clock returned no time: " + std::to_string(record.values.size()) + " values");
    }
  } catch (const GpuError& error) {
    record.note = error.what();
    record.values.clear();
    record.state.reset();
    const bool cannot = error.fault() == Fault::out_of_memory || error.fault() == Fault::unsupported;
    record.status = cannot ? RecordStatus::skipped : RecordStatus::failed;
    if (error.fault() == Fault::device_lost || error.fault() == Fault::unavailable) {
      keep(record);
      throw;
    }
  }
  keep(record);
  return true;
}

void SuiteRun::skip(Record record, const std::string& why) {
  if (journal_.has(record.name)) return;
  record.status = RecordStatus::skipped;
  record.note = why;
  keep(record);
}

const std::vector<Suite>& suites() {
  static const std::vector<Suite> table = {
#define SUITE(name, description, budget_s, quick_budget_s, several_gpus) \
  {#name, description, budget_s, quick_budget_s, several_gpus, run_##name},
#include "validate/cuda/core/suites.def"
  };
  return table;
}

}  // namespace foretrain::gpu
