#include "model/goodput/lifetime.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <utility>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/session.hpp"
#include "model/base/spread.hpp"
#include "model/base/statistics.hpp"

namespace foretrain {

namespace {

constexpr int most_interruptions = 20'000;  ///< of one training, before it is given up
// More trainings than these make no difference where each meets thousands of failures.
constexpr double enough_interruptions = 2e5;
constexpr int fewest_trainings = 30;

/// The failures that numbered trainings meet: those of one number are the same whatever a failure costs.
class DrawnFailures {
 public:
  struct Failure {
    Seconds after;  ///< the last one, or the restart behind it
    std::size_t kind = 0;
    double sign = 0.0;  ///< of life that is missed first: when it was due, from the failure
  };
  using Kinds = std::vector<std::pair<Seconds, bool>>;  ///< mean time between them, whether signs of life tell

  DrawnFailures(const Kinds& kinds, Seconds mtbf, int seed) : kinds_(kinds), mtbf_(mtbf), seed_(seed) {}

  const Failure& of(int training, std::size_t number) {
    while (trainings_.size() <= at_index(training)) {
      const auto next = static_cast<std::uint64_t>(trainings_.size());
      trainings_.push_back({summable_hash((static_cast<std::uint64_t>(seed_) << 32U) + next), {}});
    }
    Drawn& drawn = trainings_[at_index(training)];
    while (drawn.failures.size() <= number) draw(drawn);
    return drawn.failures[number];
  }

 private:
  struct Drawn {
    std::uint64_t random;
    std::vector<Failure> failures;
  };

  void draw(Drawn& of) {
    Failure& failure = of.failures.emplace_back();
    failure.after = mtbf_ * next_waiting(of.random);
    if (kinds_.empty()) return;
    failure.kind = draw_kind(of.random);
    if (kinds_[failure.kind].second) failure.sign = next_uniform(of.random);
  }
  [[nodiscard]] std::size_t draw_kind(std::uint64_t& random) const {
    double left = next_uniform(random) * (1.0 / mtbf_.value());
    for (std::size_t kind = 0; kind + 1 < kinds_.size(); ++kind) {
      left -= 1.0 / kinds_[kind].first.value();
      if (left < 0.0) return kind;
    }
    return kinds_.size() - 1;
  }

  Kinds kinds_;
  Seconds mtbf_;
  int seed_;
  std::vector<Drawn> trainings_;
};

/// Other lifetimes have the same ones: other intervals between checkpoints, another plan on the same machines.
struct FailuresKey {
  using Value = DrawnFailures;  ///< which draws more when asked for more
  DrawnFailures::Kinds kinds;
  int seed;

  bool operator==(const FailuresKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const {
    return hash_of(seed, kinds.size(), kinds.empty() ? Seconds(0.0) : kinds.front().first);
  }
  [[nodiscard]] std::size_t bytes(const DrawnFailures&) const {
    return static_cast<std::size_t>(enough_interruptions) * sizeof(DrawnFailures::Failure);
  }
};

std::shared_ptr<DrawnFailures> failures_of(const Lifetime& life, int seed) {
  DrawnFailures::Kinds kinds;
  for (const Interruption& cause : life.interruptions) kinds.emplace_back(cause.mtbf, cause.detected);
  return session().known(FailuresKey{kinds, seed}, [&] { return DrawnFailures(kinds, life.mtbf(), seed); });
}

/// Machines that stand in for broken ones.
class SpareMachines {
 public:
  explicit SpareMachines(const Lifetime& life)
      : endless_(!life.spares), idle_(life.spares.value_or(0)), repair_(life.repair) {}

  /// A machine broke, and another one is wanted `now`; when there is one.
  Seconds replace(Seconds now) {
    if (endless_) return now;
    back_.push(now + repair_);
    while (!back_.empty() && back_.top() <= now) {
      back_.pop();
      ++idle_;
    }
    if (idle_ > 0) {
      --idle_;
      return now;
    }
    const Seconds next = back_.top();
    back_.pop();
    return next;
  }

 private:
  bool endless_;
  int idle_;
  Seconds repair_;
  std::priority_queue<Seconds, std::vector<Seconds>, std::greater<>> back_;  ///< from repair, at these times
};

/// Uses of time, in the order of LifetimeShares.
enum class Account : std::size_t { useful, checkpoints, lost, detection, machines, restarts, stragglers };
struct Spent {
  std::array<Seconds, 7> times;
  Seconds& operator[](Account account) { return times[static_cast<std::size_t>(account)]; }
};

struct Course {
  Spent spent;
  std::vector<double> counts;  ///< interruptions of each kind
  Seconds length;
  bool ended = true;
};

class Training {
 public:
  Training(const Lifetime& life, DrawnFailures& failures, int number)
      : life_(life), failures_(failures), number_(number), cycle_(life.cycle()), spares_(life) {
    course_.counts.resize(life.interruptions.size());
  }

  Course run() && {
    next_failure();
    while (met_ < most_interruptions) {
      const Seconds end = began_ + length_of_rest();
      if (failure_ >= end) {
        save(whole_intervals());
        course_.spent[useful] += (life_.steps - saved_) * life_.step;
        course_.length = end;
        return std::move(course_);
      }
      meet();
    }
    course_.ended = false;  // as if it went on as it did
    course_.length = began_ * (life_.steps / std::max(saved_, 1e-9 * life_.steps));
    return std::move(course_);
  }

 private:
  using enum Account;

  void next_failure() { failure_ = now_ + failures_.of(number_, drawn_++).after; }

  /// Between what is saved and the end.
  [[nodiscard]] double whole_intervals() const { return saves_before_end(life_.steps - saved_, life_.every); }
  [[nodiscard]] Seconds length_of_rest() const {
    const double intervals = whole_intervals();
    return intervals * cycle_ + (life_.steps - saved_ - intervals * life_.every) * life_.step;
  }
  /// Checkpoints of the run since began_ that can be restored at `moment`.
  [[nodiscard]] double safe_intervals(Seconds moment) const {
    if (life_.every == 0) return 0.0;
    return std::clamp(std::floor((moment - began_ - life_.unsafe) / cycle_), 0.0, whole_intervals());
  }
  void save(double intervals) {
    saved_ += intervals * life_.every;
    if (!(intervals > 0.0)) return;  // a cycle may be endless
    const Seconds worked = intervals * life_.every * life_.step;
    course_.spent[useful] += worked;
    course_.spent[checkpoints] += intervals * cycle_ - worked;
    began_ += intervals * cycle_;
  }

  /// The failure at failure_, and all that follows until work goes on.
  void meet() {
    save(safe_intervals(failure_));
    Seconds unsaved = failure_ - began_;
    while (true) {
      const DrawnFailures::Failure failure = failures_.of(number_, drawn_ - 1);
      const Interruption& cause = life_.interruptions[failure.kind];
      ++course_.counts[failure.kind];
      ++met_;
      now_ = failure_;
      spend(stragglers, cause.before);
      if (cause.loses < 1.0) {
        spend(lost, unsaved * cause.loses);
      } else {
        course_.spent[lost] += unsaved;
        unsaved = Seconds(0.0);
      }
      const auto stop = [&](Account account, Seconds time) { spend(account, time * cause.stops); };
      if (cause.detected) stop(detection, life_.heartbeat * (life_.missed - failure.sign));
      if (cause.takes_machine) stop(machines, spares_.replace(now_) - now_);
      next_failure();  // machines that wait do not fail; those that start do, and then it begins again
      const Seconds restart = cause.restart * cause.stops;
      if (failure_ >= now_ + restart || met_ >= most_interruptions) {
        spend(restarts, restart);
        break;
      }
      spend(restarts, failure_ - now_);
    }
    began_ = now_ - unsaved;
  }

  void spend(Account account, Seconds time) {
    course_.spent[account] += time;
    now_ += time;
  }

  const Lifetime& life_;
  DrawnFailures& failures_;
  int number_;
  Seconds cycle_;
  SpareMachines spares_;
  Seconds now_, failure_;
  Seconds began_;       ///< the run since the last checkpoint or restart, with all that was held up since taken out
  double saved_ = 0.0;  ///< steps
  Course course_;
  int met_ = 0;            ///< of all kinds
  std::size_t drawn_ = 0;  ///< failures; the last of them is at failure_
};

}  // namespace

double saves_before_end(double steps, int every) {
  return every == 0 ? 0.0 : std::max(std::ceil(steps / every - 1e-9) - 1.0, 0.0);
}

Seconds Lifetime::cycle() const { return std::max(every * step + blocked, least_interval); }

Seconds Lifetime::mtbf() const {
  double rate = 0.0;
  for (const Interruption& cause : interruptions) rate += 1.0 / cause.mtbf.value();
  return Seconds(1.0 / rate);
}

Seconds Lifetime::mean_recovery() const {
  Seconds sum;
  double rates = 0.0;
  for (const Interruption& cause : interruptions) {
    const double rate = 1.0 / cause.mtbf.value();
    const Seconds stopped = cause.restart + (cause.detected ? mean_detection() : Seconds(0.0));
    sum += (stopped * cause.stops + cause.before) * rate;
    rates += rate;
  }
  return sum / rates;
}

LifetimeResult simulate_lifetime(const Lifetime& life, int trainings, int seed) {
  LifetimeResult result;
  result.interruptions.assign(life.interruptions.size(), 0.0);
  std::vector<double> lengths;
  Spent spent;
  double met = 0.0;
  const std::shared_ptr<DrawnFailures> failures = failures_of(life, seed);
  for (int number = 0; number < trainings && (met < enough_interruptions || number < fewest_trainings); ++number) {
    const Course course = Training(life, *failures, number).run();
    result.ends = result.ends && course.ended;
    lengths.push_back(course.length.value());
    for (std::size_t i = 0; i < spent.times.size(); ++i) spent.times[i] += course.spent.times[i];
    for (std::size_t kind = 0; kind < course.counts.size(); ++kind) {
      met += course.counts[kind];
      result.interruptions[kind] += course.counts[kind];
    }
  }
  for (double& count : result.interruptions) count /= static_cast<double>(lengths.size());
  using enum Account;
  Seconds besides;
  for (std::size_t i = 1; i < spent.times.size(); ++i) besides += spent.times[i];
  const Seconds all = spent[useful] + besides;
  const auto part = [&](Account account) { return spent[account] / all; };
  result.shares = {part(useful),   part(checkpoints), part(lost),      part(detection),
                   part(machines), part(restarts),    part(stragglers)};
  result.mean = Seconds(mean(lengths));
  const auto at = [&](double share) { return Seconds(quantile(lengths, share)); };
  result.p5 = at(0.05), result.p50 = at(0.5), result.p90 = at(0.9), result.p95 = at(0.95), result.p99 = at(0.99);
  return result;
}

}  // namespace foretrain
