// Rates of operators and collectives over their size: measured, and predicted beside it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/result.hpp"
#include "model/scenario/load/cases.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

/// Whose rates one picture shows.
enum class RateKind : std::uint8_t { products, attention, collectives };

/// A measurement. Operators have sizes in FLOP and rates in FLOP/s; collectives the message in bytes and the bus
/// bandwidth (nccl-tests' convention) in B/s.
struct RatePoint {
  double size = 0.0;
  double measured = 0.0, predicted = 0.0;
};

/// What has one colour: sizes increasing, by the setting of collectives that differ in the message alone. Shapes of
/// operators differ in more than their size: all have the same setting, which says nothing.
using RateSeries = std::map<std::string, std::vector<RatePoint>>;

struct RateMachine {
  std::string node;
  int nodes = 1;
  auto operator<=>(const RateMachine&) const = default;
};

/// The series of a machine by name: a precision, a way to compute attention, an operation.
using RatePanel = std::map<std::string, RateSeries>;

struct RateFigure {
  RateKind kind = RateKind::products;
  std::map<RateMachine, RatePanel> panels;
};

/// Whether the scenario is work of this kind and nothing else, on GPUs.
bool is_of(RateKind kind, const Scenario& scenario);

/// Adds the rates that the case measures. The scenario is that of the case, and of the figure's kind. Throws UsageError
/// as compare does.
void add_case(RateFigure& figure, const Case& row, const Scenario& scenario, const Result& result);

/// A panel for each machine. Measurements are dots; predictions are lines of collectives, and rings of operators.
Figure to_figure(const RateFigure& rates);

}  // namespace foretrain
