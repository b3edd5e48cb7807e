// Limits of a whole training, in days and in money, against its prediction.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/result.hpp"

namespace foretrain {

struct PlanLimits {
  std::optional<Seconds> time;
  std::optional<double> usd;
  [[nodiscard]] bool any() const { return time || usd; }
};

/// "3 M USD", "250k USD", "1.2 billion USD" → US dollars. Throws UnitError.
double parse_usd(std::string_view text);

/// A training's time or price over what it may be, whichever is more: above 1 it takes too long, or costs too much.
/// 0 where nothing is limited, or its length is not known.
double excess(const TrainResult& train, const PlanLimits& limits);

/// Probability that it stays within both limits, by the interval of its length (Bill: nine of ten lie inside).
double chance_within(const TrainResult& train, const PlanLimits& limits);

/// "60.0 days and 3.00 M USD".
std::string describe(const PlanLimits& limits);

}  // namespace foretrain
