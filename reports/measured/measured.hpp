// Between tables of cases and results: what a result says of a measured quantity, and what measurements say of results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/result.hpp"
#include "model/scenario/load/cases.hpp"
#include "reports/measured/accuracy.hpp"

namespace foretrain {

/// The result's value in base units; absent when it says nothing of the quantity.
std::optional<double> predicted_value(const Result& result, MeasuredQuantity quantity);

/// Every measurement of the case beside its prediction. Throws UsageError when the case measures nothing, or something
/// that its kind of workload does not predict.
std::vector<Comparison> compare(const Case& row, const Result& result);

/// By how much the measured steps are longer than predicted: the median over the comparisons of times and rates. Memory
/// has no say. Throws UsageError when nothing is left.
double time_factor(const std::vector<Comparison>& comparisons);

/// The result with every time multiplied by `factor` and every rate divided by it; memory stays.
Result stretched(Result result, double factor);

/// The same, and the factor goes into the provenance, with its source.
Result anchored(Result result, double factor, const std::string& source);

}  // namespace foretrain
