#include "reports/diagnose/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "model/base/bytestream.hpp"
#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "model/parallelism/layout.hpp"
#include "model/scenario/load/load.hpp"
#include "model/training/pricing/train_loader.hpp"
#include "reports/print/names.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

enum class CauseForm { setting, resource, key, bucket, nics, loader, pause };

struct CauseRow {
  std::string_view name, remedy;
  CauseForm form;
  std::string_view change;
  double smallest, usual, odds;
  std::string_view size, command, look_at;
  bool varies;
};
constexpr CauseRow cause_rows[] = {
#define CAUSE(name, remedy, form, change, smallest, usual, odds, size, command, look_at, varies) \
  {name, remedy, CauseForm::form, change, smallest, usual, odds, size, command, look_at, varies},
#include "reports/diagnose/causes.def"
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

/// Estimates, scaled by the expected step over the unchanged scenario's.
struct StepTimes {
  [[nodiscard]] CauseTimes with(const Result& result) const {
    CauseTimes cause;
    const double scale = expected / estimated;
    cause.step = scale * result.time();
    const TrainResult* train = result.train();
    if (train == nullptr) return cause;
    cause.parts = train->breakdown;
    if (train->buckets) cause.bucket = train->buckets->size;
    for (const auto& [name, time] : train->communication) {
      if (name != "waiting for other ranks") cause.communication += scale * time.total;
    }
    for (const BreakdownPart& part : breakdown_parts) cause.parts.*part.time = scale * (cause.parts.*part.time);
    return cause;
  }
  Seconds expected, estimated;
};

/// A command of nccl-tests, or its expected result, with the scenario's numbers. Unlimited buckets count as 1 GB.
std::string filled(std::string_view pattern, const Scenario& scenario) {
  std::string text(pattern);
  const Bytes bucket = is_finite(scenario.plan.sync.bucket) ? scenario.plan.sync.bucket : Bytes(1e9);
  const auto gpus = static_cast<int>(plan_gpus(scenario.plan, scenario.cluster));
  boost::replace_all(text, "{bucket}", fmt::format("{:.0f}", bucket.value()));
  boost::replace_all(text, "{gpus}", std::to_string(gpus));
  if (text.find("{bus}") == std::string::npos) return text;
  Scenario alone = scenario;
  alone.workload = CollectiveWorkload{.size = bucket, .ranks = gpus};
  alone.plan = Plan();
  const Result result = predict(alone, Fidelity::estimate, Detail::numbers);
  boost::replace_all(text, "{bus}", format_bandwidth(result.collective()->bus_bandwidth));
  return text;
}

struct Causes {
  const Scenario& scenario;
  const Reload& reload;
  const StepTimes& times;
  const StepEvidence& measured;
  std::set<std::string> has;  ///< overrides that change nothing

  /// Nothing where the scenario cannot have the cause, or has it already. `all`: the cause of the row before.
  [[nodiscard]] std::optional<CauseTimes> explained_by(const CauseRow& row,
                                                       const std::optional<CauseTimes>& all) const {
    if (row.form == CauseForm::nics && cards() <= 1) return std::nullopt;
    if (row.form == CauseForm::pause && measured.pause <= Seconds(0.0)) return std::nullopt;
    if (row.form == CauseForm::bucket && !(bucket() < scenario.plan.sync.bucket)) return std::nullopt;
    if (row.form == CauseForm::setting &&
        std::ranges::all_of(overrides_of(row, 1.0), [&](const std::string& one) { return has.contains(one); })) {
      return std::nullopt;
    }
    // One part that is slow makes the step no slower than all of them.
    const double first =
        row.form == CauseForm::key && all && all->share ? 1.0 / *all->share : measured.step / times.expected;
    try {
      return has_share(row) ? at_best_size(row, first) : at_size(row, 1.0);
    } catch (const ScenarioError&) {
    } catch (const UsageError&) {
    } catch (const ImpossiblePlan&) {
    }
    return std::nullopt;
  }

  [[nodiscard]] StepCause described(const CauseRow& row, const CauseTimes& at) const {
    StepCause cause{at, std::string(row.name), std::string(row.remedy)};
    if (row.form == CauseForm::bucket) cause.size = format_bytes(bucket());
    if (at.share) {
      const std::string left = row.form == CauseForm::nics ? fmt::format("{} of {}", cards_left(*at.share), cards())
                                                           : fmt::format("{:.0f} %", *at.share * 100.0);
      cause.size = fmt::format(fmt::runtime(row.size), left);
    }
    if (resource_of(row, scenario).empty()) cause.overrides = overrides_of(row, at.share.value_or(1.0));
    cause.command = filled(row.command, scenario);
    cause.look_at = filled(row.look_at, scenario);
    return cause;
  }

  [[nodiscard]] std::vector<std::string> overrides_of(const CauseRow& row, double share) const {
    switch (row.form) {
      case CauseForm::loader:
        return {slow_loader(share)};
      case CauseForm::nics:
        return {fmt::format("cluster.network.nics_per_node={}", cards_left(share))};
      case CauseForm::bucket:
        return {fmt::format(fmt::runtime(row.change), bucket().value())};
      case CauseForm::key:
        return {fmt::format(fmt::runtime(row.change), fmt::format("{:.6g}", share * 100.0))};
      default:
        std::vector<std::string> overrides = split(row.change, ';');
        for (std::string& one : overrides) one = trim(one);
        return row.form == CauseForm::pause ? std::vector<std::string>() : overrides;
    }
  }

  /// A loader that does nothing to the step but deliver so large a share of its samples in time.
  [[nodiscard]] std::string slow_loader(double share) const {
    const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
    if (train == nullptr) throw UsageError("nothing is loaded");
    const double samples = loader_use(scenario, *train).batch;
    return fmt::format(
        "workload.train.loader={{ workers: 1, per_sample: {:.9g} ms, pinned: true, non_blocking: true, persistent: "
        "true }}",
        times.estimated.value() * 1e3 / samples / share);
  }

  [[nodiscard]] Bytes bucket() const { return measured.bucket.value_or(Bytes(1e6)); }
  [[nodiscard]] int cards() const { return scenario.cluster.network.nics_per_node; }
  [[nodiscard]] int cards_left(double share) const {
    return std::max(1, static_cast<int>(std::lround(share * cards())));
  }

  /// Nothing where the step hardly changes.
  [[nodiscard]] std::optional<CauseTimes> at_size(const CauseRow& row, double share) const {
    constexpr double least_effect = 0.01;  ///< of the step
    const std::string_view resource = resource_of(row, scenario);
    const Scenario altered =
        resource.empty() ? reload(overrides_of(row, share)) : with_speed(scenario, resource, share);
    CauseTimes cause = times.with(predict(altered, Fidelity::estimate, Detail::numbers));
    if (has_share(row)) cause.share = share;
    if (row.form == CauseForm::pause) cause.step += cause.pause = measured.pause;
    return std::abs(cause.step / times.expected - 1.0) < least_effect ? std::nullopt : std::optional(cause);
  }

  /// At the size with which the step takes the measured time, else at the nearest. A step is about convex in the
  /// inverse of a speed: a line through two sizes on one side of that size meets the measured time behind it, one
  /// through sizes on both sides before it.
  [[nodiscard]] std::optional<CauseTimes> at_best_size(const CauseRow& row, double first) const {
    struct Size {
      double slower, excess;
    };
    const double slowest = row.form == CauseForm::nics ? cards() : 1.0 / row.smallest;
    constexpr double near_enough = 0.01;  ///< of the measured step
    constexpr double far = 4.0;           ///< times as slow: there a line says little
    std::optional<CauseTimes> nearest;
    double least = std::numeric_limits<double>::infinity();
    std::vector<Size> below{{1.0, times.expected / measured.step - 1.0}}, above;  // the last is next to the size
    double next = std::min(first, slowest);
    const int most_tries = row.form == CauseForm::key ? 3 : 8;  // predictions without symmetry take ten times as long
    for (int i = 0; i < most_tries; ++i) {
      if (row.form == CauseForm::nics) next = static_cast<double>(cards()) / cards_left(1.0 / next);
      if (next <= below.back().slower || (!above.empty() && next >= above.back().slower)) break;
      std::optional<CauseTimes> cause = at_size(row, 1.0 / next);
      const double excess = (cause ? cause->step : times.expected) / measured.step - 1.0;
      if (std::abs(excess) < least) nearest = std::move(cause);
      least = std::min(least, std::abs(excess));
      if (least < near_enough) break;
      (excess < 0.0 ? below : above).push_back({next, excess});
      const auto meets = [](const Size& a, const Size& b) {
        return b.slower - b.excess * (b.slower - a.slower) / (b.excess - a.excess);
      };
      const Size& low = below.back();
      const bool rises = low.excess > below.front().excess;
      const double most = above.empty() ? slowest : above.back().slower;
      const double behind = above.size() > 1 ? meets(above.end()[-2], above.back())
                            : rises          ? meets(below.end()[-2], low)
                                             : most;
      if (above.empty()) {
        next = rises ? std::min(behind, far * low.slower) : slowest;
      } else {
        const double ahead = meets(low, above.back());
        next = behind < most             ? std::sqrt(ahead * std::max(ahead, behind))
               : most > far * low.slower ? std::sqrt(low.slower * most)
                                         : ahead;
      }
      next = std::min(next, most);
    }
    return nearest;
  }
};

/// Those that slow the step. A row that shares predictions with the one before, or begins at its size, is of its task.
std::vector<StepCause> causes_of(const Causes& causes, const RunTasks& run_tasks) {
  std::vector<std::size_t> first{0};
  for (std::size_t row = 1; row < std::size(cause_rows); ++row) {
    const CauseRow &own = cause_rows[row], &before = cause_rows[row - 1];
    const bool same = own.form == CauseForm::resource && own.change == before.change;
    if (!same && own.form != CauseForm::key) first.push_back(row);
  }
  first.push_back(std::size(cause_rows));
  struct Found {
    std::size_t row;
    CauseTimes times;
  };
  const std::vector<std::string> answers = run_tasks(first.size() - 1, [&](std::size_t task) {
    std::vector<Found> found;
    std::optional<CauseTimes> cause;
    for (std::size_t row = first[task]; row < first[task + 1]; ++row) {
      const bool same = row > first[task] && cause_rows[row].form != CauseForm::key;
      if (!same) cause = causes.explained_by(cause_rows[row], cause);
      if (cause && cause->step > causes.times.expected) found.push_back({row, *cause});
    }
    Bytestream bytes;
    bytes.put(found);
    return std::move(bytes).text();
  });
  std::vector<StepCause> all;
  for (const std::string& answer : answers) {
    for (const Found& one : Bytestream(answer).take<Found>()) {
      all.push_back(causes.described(cause_rows[one.row], one.times));
    }
  }
  return all;
}

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

/// What a step's estimate needs: no failures and checkpoints, which are no part of it, and no jitter, with which a
/// cause changes it by about as much.
Scenario steady_of(Scenario scenario) {
  if (auto* train = std::get_if<TrainWorkload>(&scenario.workload)) {
    train->compute_spread = 0.0;
    train->checkpoint.reset();
  }
  scenario.cluster.jitter.reset();
  scenario.cluster.failures.reset();
  return scenario;
}

}  // namespace

StepDiagnosis diagnose_step(const Scenario& scenario, const Reload& reload_whole, const StepEvidence& measured,
                            Fidelity fidelity, const RunTasks& run_tasks) {
  const Result expected = predict(scenario, fidelity, Detail::numbers);
  StepDiagnosis diagnosis{.scenario = scenario.name,
                          .measured = measured.step,
                          .expected = expected.time(),
                          .low = expected.uncertainty_low,
                          .high = expected.uncertainty_high};
  const Scenario steady = steady_of(scenario);
  const Reload reload = [&](const std::vector<std::string>& overrides) { return steady_of(reload_whole(overrides)); };
  const Result result = predict(steady, Fidelity::estimate, Detail::numbers);
  const StepTimes times{diagnosis.expected, result.time()};
  const StepCause none{times.with(result), "none"};
  if (measured.step > diagnosis.expected) {
    Causes causes{steady, reload, times, measured, {}};
    for (const ResolvedSetting& one : resolved_values(steady)) causes.has.insert(one.key + "=" + one.value);
    diagnosis.causes = causes_of(causes, run_tasks);
  }
  weigh(diagnosis, measured, none);
  if (measured.step >= diagnosis.low) {
    diagnosis.changes = best_changes(diagnosis, result, state_of(diagnosis, steady, reload));
  }
  return diagnosis;
}

}  // namespace foretrain
