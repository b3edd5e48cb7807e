// The outcome of a search for plans: those that were ranked, why each loses, and which no other beats in everything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/memory/memory.hpp"
#include "model/planning/least_machines.hpp"
#include "model/planning/plan_search.hpp"
#include "model/result.hpp"
#include "reports/studies/plan_confidence.hpp"
#include "reports/studies/plan_limits.hpp"

namespace foretrain {

struct RankedPlan {
  PlanPoint point;
  std::string machines = {};           ///< "32 nodes" where several are compared, else empty
  std::string hardware;                ///< `machines`, and how many of their GPUs train
  std::vector<std::string> limits;     ///< limits of NICs below their line rate (check.hpp)
  std::vector<std::string> overrides;  ///< "KEY=VALUE", of the user, hardware and plan
  Result result;
  Seconds estimate;                ///< of the step over an uncontended network, by which plans were searched
  double value = 0.0;              ///< of the objective
  double usd = 0.0, joules = 0.0;  ///< of a step; 0 where there is no price
  double excess = 0.0;             ///< over the limits (plan_limits.hpp)
  std::optional<PlanOdds> odds;    ///< of those that have a chance
  /// Probability that memory is exceeded, if the profile's runs state memory errors.
  double chance_of_shortage = 0.0;
  /// Beyond the runs that the stack was learned from: how many times as long a step takes where the network keeps a
  /// standard deviation less of its rate than their scaling says.
  double caution = 1.0;
  bool is_measured_gpu = true;  ///< a training step of its GPUs' generation is (has_measured_step)
  bool in_front = false;        ///< no other is at least as good in time, cost and memory, and better in one
  std::string why;              ///< it is no better than the first; empty for the first

  [[nodiscard]] const TrainResult& train() const { return *result.train(); }
  /// Mean of the objective over the draws, with the probability of steps short of memory and with caution.
  [[nodiscard]] double expected() const {
    return (odds ? odds->expected : value) * expected_slowdown(chance_of_shortage) * caution;
  }
};

/// Equal for plans that differ in no more than how gradients are synchronised.
using PlanKind = std::tuple<std::string, int, int, int, int, int, Recompute, PipelineSchedule, int, bool>;
PlanKind kind_of(const PlanPoint& point, const std::string& hardware = {});
inline PlanKind kind_of(const RankedPlan& plan) { return kind_of(plan.point, plan.hardware); }

/// An unknown of a search's machines and software, with its effect on the best plan's step.
struct Unknown {
  std::string name;
  double spread = 0.0;  ///< one standard deviation of the logarithm
  double moves = 0.0;   ///< ln(step), the mean of both directions
};

/// A batch that the best plan's machines divide better.
struct BetterBatch {
  std::int64_t instead_of = 0, batch = 0;
  int gpus_per_node = 0;  ///< that it lets train
  Seconds step;           ///< of its best plan, over an uncontended network
  double speedup = 1.0;   ///< in samples a second, over the best plan's estimate
};

struct PlanReport {
  std::string scenario;
  PlanGoal goal = PlanGoal::time;
  PlanSearch search;
  std::string file;                    ///< as the user named it
  std::vector<RankedPlan> ranked;      ///< the best first
  std::vector<RankedPlan> infeasible;  ///< promising plans that do not fit
  PlanLimits limits = {};
  /// The best on each kind of machines, where several are compared: the cheapest first, or the fastest without a price.
  /// In front are those which none beats in both time and cost.
  std::vector<RankedPlan> machines = {};
  /// Unknowns over which plans were drawn, the greatest first; none if not drawn, as for memory as the objective.
  std::vector<Unknown> unknowns = {};
  double curse = 1.0;       ///< SearchOdds::curse
  bool is_simpler = false;  ///< the first one is, than others of which hardly less is expected
  /// The plans have extras that nobody allowed, without which the best takes so many times as long; infinity where
  /// nothing fits without them.
  std::optional<double> without_extras = std::nullopt;
  std::optional<BetterBatch> better_batch = std::nullopt;
  std::optional<Result> own = std::nullopt;          ///< of the scenario's own plan, where it states all of it
  bool with_command = false;                         ///< the text has the command that predicts the best plan
  std::string exporter = {};                         ///< and that which writes it as this trainer's file; empty: none
  std::optional<MachineCount> least = std::nullopt;  ///< if no plan fits: the number of machines for one
};

/// One plan that is run again takes so much more or less: the least of what published runs of one release differ by
/// (1 to 5 %).
inline constexpr double noise_of_runs = 0.015;

/// Draws the plans (plan_confidence.hpp); `effects` of each of them.
void set_odds(PlanReport& report, const std::vector<std::vector<Effect>>& effects);

/// Sorts the ranked plans by what is expected of them, the simplest first of those that are as good as the best, finds
/// the front and says why plans lose. Plans that exceed the limits come last, the nearest of these first.
void finish(PlanReport& report);

void compare_machines(PlanReport& report, std::vector<RankedPlan> best_on_each);

std::string to_text(const PlanReport& report);
std::string to_json(const PlanReport& report);
/// A table of cases, one row a plan, with what was predicted.
std::string to_csv(const PlanReport& report);

}  // namespace foretrain
