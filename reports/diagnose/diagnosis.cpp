#include "reports/diagnose/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <exception>
#include <limits>
#include <span>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "model/parallelism/layout.hpp"
#include "reports/diagnose/step_changes.hpp"
#include "reports/print/names.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

enum class CauseForm { setting, resource, key, bucket, nics, loader, pause };

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

bool has_share(const CauseRow& row) {
  return row.form != CauseForm::setting && row.form != CauseForm::bucket && row.form != CauseForm::pause;
}

const CauseRow& row_of(const StepCause& cause) {
  return *std::ranges::find(cause_rows, std::string_view(cause.name), &CauseRow::name);
}

/// Steps by two fidelities. An estimate, which is fast, is scaled by what a simulation of the unchanged scenario says
/// in its place.
class StepTimes {
 public:
  StepTimes(const Scenario& scenario, Seconds expected, Fidelity fidelity)
      : fidelity(fidelity), scale_(expected / predict(scenario, Fidelity::estimate, Detail::numbers).time()) {}

  void set(StepCause& cause, const Result& result) const {
    const double scale = result.fidelity == Fidelity::estimate ? scale_ : 1.0;
    cause.step = scale * result.time();
    const TrainResult* train = result.train();
    if (train == nullptr) return;
    cause.parts = train->breakdown;
    if (train->buckets) cause.bucket = train->buckets->size;
    for (const auto& [name, time] : train->communication) {
      if (name != "waiting for other ranks") cause.communication += scale * time.total;
    }
    for (const BreakdownPart& part : breakdown_parts) cause.parts.*part.time = scale * (cause.parts.*part.time);
  }
  Fidelity fidelity;

 private:
  double scale_;
};

std::string command_of(const CauseRow& row, const Scenario& scenario) {
  std::string command(row.command);
  boost::replace_all(command, "{bucket}", fmt::format("{:.0f}", scenario.plan.sync.bucket.value()));
  boost::replace_all(command, "{gpus}", std::to_string(plan_gpus(scenario.plan, scenario.cluster)));
  return command;
}

/// Nothing where the scenario cannot be.
template <typename Find>
std::optional<StepCause> if_possible(const Find& find) {
  try {
    return find();
  } catch (const ScenarioError&) {
  } catch (const UsageError&) {
  } catch (const ImpossiblePlan&) {
  }
  return std::nullopt;
}

class Causes {
 public:
  Causes(const Scenario& scenario, const Reload& reload, const StepTimes& times, Seconds expected,
         const StepEvidence& measured)
      : scenario_(scenario),
        reload_(reload),
        times_(times),
        expected_(expected),
        pause_(measured.pause),
        measured_(measured.step),
        bucket_(measured.bucket.value_or(Bytes(1e6))) {}

  /// Nothing where the scenario cannot have the cause, or has it already.
  [[nodiscard]] std::optional<StepCause> explained_by(const CauseRow& row) const {
    if (row.form == CauseForm::nics && cards() <= 1) return std::nullopt;
    if (row.form == CauseForm::pause && pause_ <= Seconds(0.0)) return std::nullopt;
    if (row.form == CauseForm::bucket && !(bucket_ < scenario_.plan.sync.bucket)) return std::nullopt;
    return if_possible([&] { return has_share(row) ? at_best_size(row) : at_size(row, 1.0, Fidelity::estimate); });
  }

  /// The same cause by the diagnosis's own fidelity.
  [[nodiscard]] StepCause simulated(const StepCause& estimated) const {
    if (times_.fidelity == Fidelity::estimate) return estimated;
    return if_possible([&] { return nearer_by_secants(row_of(estimated), estimated.share); }).value_or(estimated);
  }

 private:
  static constexpr double near_enough = 0.002;  ///< of the measured step

  /// From the estimated size on, until the step takes the measured time.
  [[nodiscard]] std::optional<StepCause> nearer_by_secants(const CauseRow& row, std::optional<double> share) const {
    std::optional<StepCause> cause = at_size(row, share.value_or(1.0), times_.fidelity);
    if (!share || row.form == CauseForm::nics) return cause;
    double slower = 1.0 / *share, slower_before = 1.0;
    Seconds before = expected_;
    for (int i = 0; cause && i < 3 && std::abs(cause->step / measured_ - 1.0) > near_enough; ++i) {
      const double next = slower + (slower - slower_before) * ((measured_ - cause->step) / (cause->step - before));
      if (!(next > 1.0) || next > 1.0 / row.smallest) break;
      slower_before = std::exchange(slower, next);
      before = cause->step;
      cause = at_size(row, 1.0 / slower, times_.fidelity);
    }
    return cause;
  }

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
      case CauseForm::pause:
        break;
      case CauseForm::bucket:
        overrides = {fmt::format(fmt::runtime(row.change), bucket_.value())};
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

  [[nodiscard]] std::optional<StepCause> at_size(const CauseRow& row, double share, Fidelity fidelity) const {
    Altered altered = with_cause(row, share);
    StepCause cause{.name = std::string(row.name), .overrides = std::move(altered.overrides)};
    times_.set(cause, predict(altered.scenario, fidelity, Detail::numbers));
    if (row.form == CauseForm::pause) cause.step += cause.pause = pause_;
    if (std::abs(cause.step / expected_ - 1.0) < least_effect) return std::nullopt;
    cause.command = command_of(row, scenario_);
    cause.look_at = row.look_at;
    if (row.form == CauseForm::bucket) cause.size = format_bytes(bucket_);
    if (!has_share(row)) return cause;
    const bool of_cards = row.form == CauseForm::nics;
    cause.share = of_cards ? static_cast<double>(cards_left(share)) / cards() : share;
    const std::string left =
        of_cards ? fmt::format("{} of {}", cards_left(share), cards()) : fmt::format("{:.0f} %", share * 100.0);
    cause.size = fmt::format(fmt::runtime(row.size), left);
    return cause;
  }

  /// At the size with which the step takes the measured time, else at the least. A step is nearly linear in the
  /// inverse of a speed.
  [[nodiscard]] std::optional<StepCause> at_best_size(const CauseRow& row) const {
    const double slowest = row.form == CauseForm::nics ? cards() : 1.0 / row.smallest;
    std::optional<StepCause> nearest;
    double least = std::numeric_limits<double>::infinity();
    const auto over = [&](double slower) {
      std::optional<StepCause> cause = at_size(row, 1.0 / slower, Fidelity::estimate);
      const double excess = (cause ? cause->step : expected_) / measured_ - 1.0;
      if (std::abs(excess) < least) nearest = std::move(cause);
      least = std::min(least, std::abs(excess));
      return std::abs(excess) < near_enough ? 0.0 : excess;
    };
    double low = 1.0, at_low = expected_ / measured_ - 1.0;
    double high = std::min(measured_ / expected_, slowest), at_high = over(high);
    while (at_high < 0.0 && high < slowest) {
      low = std::exchange(high, std::min(3.0 * high, slowest));
      at_low = std::exchange(at_high, over(high));
    }
    if (at_high <= 0.0) return nearest;
    std::uintmax_t steps = 14;
    boost::math::tools::toms748_solve(
        over, low, high, at_low, at_high, [](double a, double b) { return b - a < near_enough * a; }, steps);
    return nearest;
  }

  const Scenario& scenario_;
  const Reload& reload_;
  const StepTimes& times_;
  Seconds expected_, pause_, measured_;
  Bytes bucket_;
};

double bell(double deviations) { return std::exp(-0.5 * deviations * deviations); }

/// Likelihood of a size, from 1 for none.
double usual_size(const CauseRow& row, const std::optional<double>& share) {
  return share ? bell(std::log(*share) / std::log(row.usual)) : 1.0;
}

/// Steps of a log that vary, or do not, speak for causes that come and go, or against them.
double steadiness(const CauseRow& row, const std::optional<double>& varies) {
  constexpr double uneven = 1.05, even = 1.02, weight = 3.0;
  if (!varies || !row.varies) return 1.0;
  return *varies > uneven ? weight : *varies < even ? 1.0 / weight : 1.0;
}

/// The scenario, loaded anew, with the likeliest cause where the step is slower than its interval.
Reload state_of(const StepDiagnosis& diagnosis, const Scenario& scenario, const Reload& reload) {
  if (diagnosis.measured <= diagnosis.high || diagnosis.causes.empty() || !diagnosis.explained) return reload;
  const StepCause& likely = diagnosis.causes.front();
  return [likely, resource = resource_of(row_of(likely), scenario), reload](const std::vector<std::string>& further) {
    std::vector<std::string> all = likely.overrides;
    all.insert(all.end(), further.begin(), further.end());
    const Scenario state = reload(all);
    return resource.empty() ? state : with_speed(state, resource, *likely.share);
  };
}

/// Likelihoods of all that are given and of none, by how far each step lies from the measured one.
void weigh(StepDiagnosis& diagnosis, const StepEvidence& measured, const StepCause& none) {
  constexpr double least_deviation = 0.02;  ///< of the logarithm: no prediction is better
  const double deviation =
      std::max(std::log(std::max(1.0, diagnosis.high / diagnosis.low)) / (2.0 * ninth), least_deviation);
  const auto deviations = [&](const StepCause& cause) {
    if (!measured.parts) return std::abs(std::log(measured.step / cause.step) / deviation);
    constexpr double bucket_deviation = 0.7;  ///< of the logarithm: buckets end with a layer
    const auto squared = [](double x) { return x * x; };
    const Seconds scale = deviation * measured.step;
    double sum = squared((cause.pause - measured.pause) / scale);
    for (const BreakdownPart& part : breakdown_parts) {
      sum += squared((cause.parts.*part.time - *measured.parts.*part.time) / scale);
    }
    const bool one_rank = &cause != &none && row_of(cause).change.find(" gpu: ") != std::string_view::npos;
    if (measured.lag)
      sum += squared((*measured.lag - (one_rank ? cause.parts.compute - none.parts.compute : Seconds(0.0))) / scale);
    if (measured.communication) sum += squared((cause.communication - *measured.communication) / scale);
    if (measured.bucket && is_finite(cause.bucket)) {
      sum += squared(std::log(cause.bucket / *measured.bucket) / bucket_deviation);
    }
    return std::sqrt(sum);
  };
  double nearest = deviations(none);
  for (const StepCause& cause : diagnosis.causes) nearest = std::min(nearest, deviations(cause));
  // Over that of the nearest: far from all of them each by itself would be zero.
  const auto fit = [&](const StepCause& cause) {
    return std::exp(0.5 * (nearest + deviations(cause)) * (nearest - deviations(cause)));
  };
  const auto reaches = [&](const StepCause& cause) {
    const double scale = measured.step / cause.step;
    return scale >= diagnosis.low / diagnosis.expected && scale <= diagnosis.high / diagnosis.expected;
  };
  diagnosis.explained = diagnosis.within() || std::ranges::any_of(diagnosis.causes, reaches);
  double all = 0.0;
  for (const CauseRow& row : cause_rows) all += row.odds;
  all = diagnosis.none = all * (diagnosis.explained ? fit(none) : 1.0);
  for (StepCause& cause : diagnosis.causes) {
    const CauseRow& row = row_of(cause);
    cause.likelihood = row.odds * usual_size(row, cause.share) * steadiness(row, measured.varies) * fit(cause);
    cause.explained = (cause.step - diagnosis.expected) / (diagnosis.measured - diagnosis.expected);
    all += cause.likelihood;
  }
  diagnosis.none /= all;
  for (StepCause& cause : diagnosis.causes) cause.likelihood /= all;
  std::ranges::stable_sort(diagnosis.causes, std::ranges::greater{}, &StepCause::likelihood);
}

}  // namespace

StepDiagnosis diagnose_step(const Scenario& scenario, const Reload& reload, const StepEvidence& measured,
                            Fidelity fidelity) {
  const Result result = predict(scenario, fidelity, Detail::numbers);
  StepDiagnosis diagnosis{.scenario = scenario.name,
                          .measured = measured.step,
                          .expected = result.time(),
                          .low = result.uncertainty_low,
                          .high = result.uncertainty_high};
  const StepTimes times(scenario, result.time(), fidelity);
  StepCause none{.name = "none"};
  times.set(none, result);
  if (measured.step > diagnosis.expected) {
    const Causes causes(scenario, reload, times, result.time(), measured);
    for (const CauseRow& row : cause_rows) {
      std::optional<StepCause> cause = causes.explained_by(row);
      if (cause && cause->step > diagnosis.expected) diagnosis.causes.push_back(std::move(*cause));
    }
    weigh(diagnosis, measured, none);
    constexpr std::size_t simulated = 6;  // those that a reader sees
    for (StepCause& cause : std::span(diagnosis.causes).first(std::min(simulated, diagnosis.causes.size()))) {
      cause = causes.simulated(cause);
    }
  }
  weigh(diagnosis, measured, none);
  if (measured.step >= diagnosis.low) {
    diagnosis.changes = best_changes(diagnosis, result, state_of(diagnosis, scenario, reload), fidelity);
  }
  return diagnosis;
}

}  // namespace foretrain
