// Which plan is best under uncertain constants. In: each plan's value as predicted, and
// what every unknown makes of it. Out: what to expect of each plan, how likely it is the best, and by how much the
// least of many predictions is too good.
#pragma once

#include <cstdint>
#include <vector>

namespace foretrain {

/// ln(step with it ÷ step as predicted), where something unknown is one standard deviation better, and worse, than
/// assumed.
struct Effect {
  double better = 0.0, worse = 0.0;
};

struct UncertainPlan {
  double value = 0.0;           ///< of the objective, in proportion to the step's time
  std::vector<Effect> effects;  ///< of each unknown, in the same order for all plans
  /// Parts of the plan: plans are off, beside their effects, by an equal share for each part, and those with
  /// the same part by the same.
  std::vector<std::uint64_t> parts;
  std::size_t kind = 0;  ///< plans of one kind are no rivals
  double filled = 0.0;   ///< share of the memory, as predicted
};

struct PlanOdds {
  double expected = 0.0;  ///< mean value over the draws
  double low = 0.0;       ///< P10
  double high = 0.0;      ///< P90
  double chance = 0.0;    ///< that one of its kind is the best: share of the draws
  double regret = 0.0;    ///< mean of its value over the draw's best, less 1
};

struct SearchOdds {
  std::vector<PlanOdds> plans;  ///< in the order given
  /// Time of the plan that predictions of this spread would choose, over its predicted time: the winner's
  /// curse (Smith and Winkler, "The optimizer's curse", Management Science 52, 2006). 1 where nothing is unknown.
  double curse = 1.0;
};

/// Every unknown is a normal deviate, the same for all plans in a draw. So is the own error of each plan, whose
/// logarithm has the standard deviation `own_spread` over all its parts. Deviates are a Latin hypercube: of each
/// unknown, every 64th part of its distribution is drawn once (McKay, Beckman and Conover, Technometrics 21, 1979). The
/// same for the same input, on any machine.
SearchOdds odds_of(const std::vector<UncertainPlan>& plans, double own_spread);

/// ln(step ÷ predicted) of each plan in each of so many draws, by plan and then draw. As odds_of() draws them, but for
/// what a step takes longer where memory, off by `memory_spread` in all, shared by parts as steps' errors are, does not
/// do (memory.hpp).
std::vector<std::vector<double>> drawn_logs(const std::vector<UncertainPlan>& plans, double own_spread,
                                            double memory_spread, int draws);

/// The middles of so many equally likely parts of the normal distribution, in an order of their own: the same for the
/// same `which`.
std::vector<double> normal_deviates(std::uint64_t which, int draws);

/// One standard deviation of a plan's own error beside what all plans of a stack share: ln(predicted ÷ measured) within
/// a table, the median of 17 groups of six and more rows of the shipped training tables (315 rows, from 0.005 to 0.13).
inline constexpr double plan_spread = 0.05;

}  // namespace foretrain
