// A training from its first step to its last, through failures: how long it takes, and what the time goes to.
//
// Steps follow each other; after every so many the state is saved. A failure stops the training until it is noticed,
// there is a machine in place of the broken one, and processes and state are back. What was done since the state was
// last saved is then done again. Failures of all parts together are a Poisson process. The time to the next one is
// exponentially distributed whatever has happened, and its cause is each part with the share of its rate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

struct Interruption {
  std::string what;  ///< "gpu", "software", "server", …
  Seconds mtbf;      ///< of all such parts together
  bool takes_machine = false;
  bool detected = true;  ///< by missing signs of life; else the replacement is there already
  Seconds before;        ///< lost before anything is noticed: what waiting for a slow device has cost
  Seconds restart;       ///< from the moment at which all machines are there
  double stops = 1.0;    ///< share of the training that stands still at the same time
  double loses = 1.0;    ///< share of the work since the last checkpoint that is done again
};

struct Lifetime {
  double steps = 0.0;      ///< to be done
  Seconds step;            ///< without checkpoints
  int every = 0;           ///< steps between checkpoints; 0: none
  Seconds blocked;         ///< a checkpoint holds the training up for this
  Seconds unsafe;          ///< after the training goes on, until that state could be restored
  Seconds least_interval;  ///< between checkpoints: the next one waits until the last is written
  std::vector<Interruption> interruptions;
  Seconds heartbeat;
  int missed = 1;
  std::optional<int> spares;  ///< nothing: there is always one
  Seconds repair;

  /// From one checkpoint's end to the next one's.
  [[nodiscard]] Seconds cycle() const;
  /// Between interruptions of any kind.
  [[nodiscard]] Seconds mtbf() const;
  /// From the failure until the last missing sign of life, on average: it happens anywhere between two.
  [[nodiscard]] Seconds mean_detection() const { return heartbeat * (missed - 0.5); }
  /// From a failure until work goes on, on average over failures, with a machine at hand.
  [[nodiscard]] Seconds mean_recovery() const;
};

/// Breakdown of the time of a training. Shares of its whole length.
struct LifetimeShares {
  double useful = 0.0;
  double checkpoints = 0.0;
  double lost = 0.0;  ///< work that was done again
  double detection = 0.0;
  double machines = 0.0;  ///< waiting for a spare or a repair
  double restarts = 0.0;
  double stragglers = 0.0;
};

struct LifetimeResult {
  LifetimeShares shares;  ///< mean; `useful` is the goodput
  Seconds mean, p5, p50, p90, p95, p99;
  std::vector<double> interruptions;  ///< of each kind, mean number in a training
  bool ends = true;  ///< false: failures come so fast that it was given up, and lengths are extrapolated
};

/// Checkpoints in this many steps, one after every `every` of them and none at the very end; 0: none at all.
double saves_before_end(double steps, int every);

/// Many trainings, each with failures of its own; the same for the same seed on every machine. Trainings are numbered:
/// two lifetimes with the same interruptions meet them at the same times.
LifetimeResult simulate_lifetime(const Lifetime& life, int trainings, int seed);

}  // namespace foretrain
