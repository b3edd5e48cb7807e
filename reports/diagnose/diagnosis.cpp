#include "reports/diagnose/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <exception>
#include <tuple>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "model/parallelism/layout.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

enum class CauseForm { setting, resource, key, nics, loader };

struct CauseRow {
  std::string_view name;
  CauseForm form;
  std::string_view change;
  double smallest, usual, odds;
  std::string_view size, command, look_at;
  bool varies;
};
constexpr CauseRow cause_rows[] = {
#define CAUSE(name, form, change, smallest, usual, odds, size, command, look_at, varies) \
  {name, CauseForm::form, change, smallest, usual, odds, size, command, look_at, varies},
#include "reports/diagnose/causes.def"
};

constexpr double least_effect = 0.002;  ///< of the step: what changes it by less is no cause of this scenario

/// A scenario with one cause at one size.
struct Altered {
  std::vector<std::string> overrides;
  Scenario scenario;
};

/// The resource whose speed the cause is; empty where it is another override.
std::string_view resource_of(const CauseRow& row, const Scenario& scenario) {
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  const bool loads = row.form == CauseForm::loader && train != nullptr && train->loader;
  return loads ? sample_preprocessing : row.form == CauseForm::resource ? row.change : std::string_view();
}

class Causes {
 public:
  Causes(const Scenario& scenario, const Reload& reload, Fidelity fidelity, Seconds expected, Seconds measured)
      : scenario_(scenario), reload_(reload), fidelity_(fidelity), expected_(expected), measured_(measured) {}

  /// Nothing where the scenario cannot have the cause, or has it already.
  [[nodiscard]] std::optional<StepCause> explained_by(const CauseRow& row) const {
    if (row.form == CauseForm::nics && cards() <= 1) return std::nullopt;
    try {
      return row.form == CauseForm::setting ? at_size(row, 1.0) : at_best_size(row);
    } catch (const ScenarioError&) {
    } catch (const UsageError&) {
    } catch (const ImpossiblePlan&) {
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] Altered with_cause(const CauseRow& row, double share) const {
    const std::string_view resource = resource_of(row, scenario_);
    if (!resource.empty()) return {{}, with_speed(scenario_, resource, share)};
    std::vector<std::string> overrides;
    switch (row.form) {
      case CauseForm::loader:
        overrides = {slow_loader(share)};
        break;
      case CauseForm::nics:
        overrides = {fmt::format("cluster.network.nics_per_node={}", cards_left(share))};
        break;
      case CauseForm::key:
        overrides = {fmt::format(fmt::runtime(row.change), fmt::format("{:.6g}", share * 100.0))};
        break;
      default:
        for (const std::string& one : split(row.change, ';')) overrides.emplace_back(trim(one));
    }
    return {overrides, reload_(overrides)};
  }

  /// A loader that does nothing to the step but deliver so large a share of its samples in time.
  [[nodiscard]] std::string slow_loader(double share) const {
    const auto* train = std::get_if<TrainWorkload>(&scenario_.workload);
    if (train == nullptr) throw UsageError("nothing is loaded");
    const double samples = static_cast<double>(train->global_batch) / replicas_of(scenario_.plan);
    return fmt::format(
        "workload.train.loader={{ workers: 1, per_sample: {:.9g} ms, pinned: true, non_blocking: true, persistent: "
        "true }}",
        expected_.value() * 1e3 / samples / share);
  }

  [[nodiscard]] int cards() const { return scenario_.cluster.network.nics_per_node; }
  [[nodiscard]] int cards_left(double share) const {
    return std::max(1, static_cast<int>(std::lround(share * cards())));
  }

  [[nodiscard]] Seconds step_of(const Scenario& scenario) const {
    return predict(scenario, fidelity_, Detail::numbers).time();
  }

  [[nodiscard]] std::optional<StepCause> at_size(const CauseRow& row, double share) const {
    Altered altered = with_cause(row, share);
    StepCause cause{.name = std::string(row.name), .overrides = std::move(altered.overrides)};
    cause.step = step_of(altered.scenario);
    if (std::abs(cause.step / expected_ - 1.0) < least_effect) return std::nullopt;
    if (row.form == CauseForm::setting) return cause;
    const bool of_cards = row.form == CauseForm::nics;
    cause.share = of_cards ? static_cast<double>(cards_left(share)) / cards() : share;
    const std::string left =
        of_cards ? fmt::format("{} of {}", cards_left(share), cards()) : fmt::format("{:.0f} %", share * 100.0);
    cause.size = fmt::format(fmt::runtime(row.size), left);
    return cause;
  }

  /// At the size with which the step takes the measured time, else at the least: times fall as sizes grow.
  [[nodiscard]] std::optional<StepCause> at_best_size(const CauseRow& row) const {
    double low = std::log(row.form == CauseForm::nics ? 1.0 / cards() : row.smallest), high = 0.0;
    const auto over = [&](double size) {
      return std::log(step_of(with_cause(row, std::exp(size)).scenario) / measured_);
    };
    const double at_low = over(low), at_high = std::log(expected_ / measured_);
    if (at_low <= 0.0) return at_size(row, std::exp(low));
    constexpr double near_enough = 0.002;
    std::uintmax_t steps = 14;
    std::tie(low, high) = boost::math::tools::toms748_solve(
        over, low, high, at_low, at_high, [](double a, double b) { return b - a < near_enough; }, steps);
    return at_size(row, std::exp((low + high) / 2.0));
  }

  const Scenario& scenario_;
  const Reload& reload_;
  Fidelity fidelity_;
  Seconds expected_, measured_;
};

double bell(double deviations) { return std::exp(-0.5 * deviations * deviations); }

/// How usual a size is, from 1 for none.
double usual_size(const CauseRow& row, const std::optional<double>& share) {
  return share ? bell(std::log(*share) / std::log(row.usual)) : 1.0;
}

/// Steps of a log that vary, or do not, speak for causes that come and go, or against them.
double steadiness(const CauseRow& row, const std::optional<double>& varies) {
  constexpr double uneven = 1.05, even = 1.02, weight = 3.0;
  if (!varies || !row.varies) return 1.0;
  return *varies > uneven ? weight : *varies < even ? 1.0 / weight : 1.0;
}

std::string command_of(const CauseRow& row, const Scenario& scenario) {
  std::string command(row.command);
  boost::replace_all(command, "{bucket}", fmt::format("{:.0f}", scenario.plan.sync.bucket.value()));
  boost::replace_all(command, "{gpus}", std::to_string(plan_gpus(scenario.plan, scenario.cluster)));
  return command;
}

/// The scenario, loaded anew, with the likeliest cause where the step is slower than its interval.
Reload state_of(const StepDiagnosis& diagnosis, const Scenario& scenario, const Reload& reload) {
  if (diagnosis.measured <= diagnosis.high || diagnosis.causes.empty()) return reload;
  const StepCause& likely = diagnosis.causes.front();
  const CauseRow& row = *std::ranges::find(cause_rows, std::string_view(likely.name), &CauseRow::name);
  return [likely, resource = resource_of(row, scenario), reload](const std::vector<std::string>& further) {
    std::vector<std::string> all = likely.overrides;
    all.insert(all.end(), further.begin(), further.end());
    const Scenario state = reload(all);
    return resource.empty() ? state : with_speed(state, resource, *likely.share);
  };
}

/// Whether each of these overrides is of a key of the others.
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

/// What helps most from that state without another training or other hardware; the end of the cause is one of the
/// changes.
std::vector<StepChange> best_changes(const StepDiagnosis& diagnosis, const Scenario& scenario, const Result& expected,
                                     const Reload& reload, Fidelity fidelity) {
  constexpr std::size_t shown = 3;
  constexpr double least_gain = 0.01;
  const Reload in_state = state_of(diagnosis, scenario, reload);
  const Scenario state = in_state({});
  const Result now = predict(state, fidelity, Detail::numbers);
  std::vector<StepChange> changes;
  const auto add = [&](const std::string& name, const std::vector<std::string>& overrides, const Result& result) {
    const TrainResult *before = now.train(), *after = result.train();
    if (before != nullptr && before->memory.fits() && !after->memory.fits()) return;
    const double speedup =
        before != nullptr ? after->samples_per_second / before->samples_per_second : now.time() / result.time();
    if (speedup < 1.0 + least_gain) return;
    changes.push_back({name, overrides, diagnosis.measured * (result.time() / now.time()), speedup});
  };
  const bool slowed = now.time() > expected.time();
  const StepCause* cause = slowed ? &diagnosis.causes.front() : nullptr;
  if (slowed) add("fix: " + cause->name, {}, expected);
  for (const WhatIf& remedy : remedies(state, in_state)) {
    const bool fixes = slowed && !cause->overrides.empty() && has_keys_of(remedy.overrides, cause->overrides);
    if (!remedy.scenario || fixes || changes_training(remedy)) continue;
    try {
      add(remedy.name, remedy.overrides, predict(*remedy.scenario, fidelity, Detail::numbers));
    } catch (const std::exception&) {
      continue;  // a change that this scenario cannot have
    }
  }
  std::ranges::stable_sort(changes, std::ranges::greater{}, &StepChange::speedup);
  if (changes.size() > shown) changes.resize(shown);
  return changes;
}

}  // namespace

StepDiagnosis diagnose_step(const Scenario& scenario, const Reload& reload, Seconds measured, Fidelity fidelity,
                            std::optional<double> varies) {
  const Result result = predict(scenario, fidelity, Detail::numbers);
  const Causes causes(scenario, reload, fidelity, result.time(), measured);
  StepDiagnosis diagnosis{.scenario = scenario.name,
                          .measured = measured,
                          .expected = result.time(),
                          .low = result.uncertainty_low,
                          .high = result.uncertainty_high};
  constexpr double least_deviation = 0.02;  ///< of the logarithm: no prediction is better
  const double deviation =
      std::max(std::log(std::max(1.0, diagnosis.high / diagnosis.low)) / (2.0 * ninth), least_deviation);
  double odds_of_causes = 0.0;
  for (const CauseRow& row : cause_rows) odds_of_causes += row.odds;
  const auto deviations = [&](Seconds step) { return std::log(measured / step) / deviation; };
  double nearest = std::abs(deviations(diagnosis.expected));
  for (const CauseRow& row : cause_rows) {
    if (measured <= diagnosis.expected) break;
    std::optional<StepCause> cause = causes.explained_by(row);
    if (!cause || cause->step <= diagnosis.expected) continue;
    cause->explained = (cause->step - diagnosis.expected) / (measured - diagnosis.expected);
    cause->command = command_of(row, scenario);
    cause->look_at = row.look_at;
    cause->likelihood = row.odds * usual_size(row, cause->share) * steadiness(row, varies);
    nearest = std::min(nearest, std::abs(deviations(cause->step)));
    diagnosis.causes.push_back(std::move(*cause));
  }
  // Over that of the nearest: far from all of them each by itself would be zero.
  const auto fit = [&](Seconds step) {
    return std::exp(0.5 * (nearest + deviations(step)) * (nearest - deviations(step)));
  };
  diagnosis.none = odds_of_causes * fit(diagnosis.expected);
  double all = diagnosis.none;
  for (StepCause& cause : diagnosis.causes) all += cause.likelihood *= fit(cause.step);
  diagnosis.none /= all;
  for (StepCause& cause : diagnosis.causes) cause.likelihood /= all;
  std::ranges::stable_sort(diagnosis.causes, std::ranges::greater{}, &StepCause::likelihood);
  if (measured >= diagnosis.low) diagnosis.changes = best_changes(diagnosis, scenario, result, reload, fidelity);
  return diagnosis;
}

}  // namespace foretrain
