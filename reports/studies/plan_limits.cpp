#include "reports/studies/plan_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"

namespace foretrain {

namespace {

constexpr double twentieth = 1.6448536269514722;  // standard deviations above which one of twenty lies

}  // namespace

double parse_usd(std::string_view text) {
  constexpr std::string_view currency = "USD", expected = "an amount of money such as 3 M USD or 250000 USD";
  std::string_view amount = trim(text);
  if (!amount.ends_with(currency)) throw UnitError("no amount in USD", std::string(expected));
  amount = trim(amount.substr(0, amount.size() - currency.size()));
  const auto [number, unit] = split_number_and_unit(amount);
  const std::optional<double> multiple = unit.empty() ? 1.0 : multiple_of(unit);
  if (!multiple) throw UnitError(fmt::format("{} is no multiple", unit), std::string(expected));
  if (!(number > 0.0)) throw UnitError("no money", std::string(expected));
  return number * *multiple;
}

double excess(const TrainResult& train, const PlanLimits& limits) {
  double most = 0.0;
  if (limits.time && train.time_to_train) most = *train.time_to_train / *limits.time;
  if (limits.usd && train.cost_usd) most = std::max(most, *train.cost_usd / *limits.usd);
  return most;
}

double chance_within(const TrainResult& train, const PlanLimits& limits) {
  const double over = excess(train, limits);
  if (!train.bill || !(over > 0.0)) return 1.0;
  const Seconds mean = *train.time_to_train, bound = over > 1.0 ? train.bill->shortest : train.bill->longest;
  const double spread = std::abs(std::log(bound / mean)) / twentieth;
  if (!(spread > 0.0)) return over <= 1.0 ? 1.0 : 0.0;
  return 0.5 * std::erfc(std::log(over) / spread / std::numbers::sqrt2);
}

std::string describe(const PlanLimits& limits) {
  std::string text = limits.time ? format_seconds(*limits.time) : "";
  if (limits.usd) text += fmt::format("{}{} USD", text.empty() ? "" : " and ", format_count(*limits.usd));
  return text;
}

}  // namespace foretrain
