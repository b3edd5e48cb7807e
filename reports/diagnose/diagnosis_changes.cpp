// Changes that make a slow step faster.
#include <algorithm>
#include <exception>

#include "reports/diagnose/diagnosis.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

bool has_keys_of(const std::vector<std::string>& overrides, const std::vector<std::string>& others) {
  return std::ranges::all_of(overrides, [&](const std::string& one) {
    const std::string key = one.substr(0, one.find('=') + 1);
    return std::ranges::any_of(others, [&](const std::string& other) { return other.starts_with(key); });
  });
}

/// Whether a change alters what is learned, or needs other hardware.
bool changes_training(const WhatIf& change) {
  static constexpr std::string_view keys[] = {"workload.train.global_batch", "workload.train.precision",
                                              "plan.sync.compression", "plan.sync.consistency",
                                              "cluster.network.nic_bandwidth"};
  return std::ranges::any_of(change.overrides, [](const std::string& one) {
    return std::ranges::any_of(keys, [&](std::string_view key) { return one.starts_with(key); });
  });
}

double speedup_of(const Result& now, const Result& changed) {
  const TrainResult *before = now.train(), *after = changed.train();
  return before != nullptr ? after->samples_per_second / before->samples_per_second : now.time() / changed.time();
}

}  // namespace

std::vector<StepChange> best_changes(const StepDiagnosis& diagnosis, const Result& expected, const Reload& in_state) {
  constexpr std::size_t shown = 3;
  constexpr double least_gain = 0.01;
  const Scenario state = in_state({});
  const Result now = predict(state, Fidelity::estimate, Detail::numbers);
  std::vector<StepChange> changes;
  const auto add = [&](const std::string& name, const std::vector<std::string>& overrides, const Result& result) {
    changes.push_back({name, overrides, diagnosis.measured * (result.time() / now.time()), speedup_of(now, result)});
  };
  const StepCause* cause = now.time() > expected.time() ? &diagnosis.causes.front() : nullptr;
  if (cause != nullptr) add(cause->remedy, {}, expected);
  for (const WhatIf& change : remedies(state, in_state)) {
    const bool fixes = cause != nullptr && !cause->overrides.empty() && has_keys_of(change.overrides, cause->overrides);
    if (!change.scenario || fixes || changes_training(change)) continue;
    try {
      const Result result = predict(*change.scenario, Fidelity::estimate, Detail::numbers);
      const bool grows = now.train() != nullptr && now.train()->memory.fits() && !result.train()->memory.fits();
      if (!grows && speedup_of(now, result) > 1.0 + least_gain) add(change.name, change.overrides, result);
    } catch (const std::exception&) {  // a change that this scenario cannot have
    }
  }
  std::erase_if(changes, [](const StepChange& change) { return change.speedup <= 1.0; });
  std::ranges::stable_sort(changes, std::ranges::greater{}, &StepChange::speedup);
  if (changes.size() > shown) changes.resize(shown);
  return changes;
}

}  // namespace foretrain
