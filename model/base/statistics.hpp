// Means and medians of measured or simulated values.
#pragma once

#include <vector>

namespace foretrain {

/// The middle of the values, or the mean of the two middle ones. Throws InternalError for an empty list.
double median(std::vector<double> values);

/// Throws InternalError for an empty list.
double mean(const std::vector<double>& values);

/// The value below which `share` (0 to 1) of the values lies, between two of them where need be, as if they were points
/// of a line: definition 7 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996. Throws
/// InternalError for an empty list.
double quantile(std::vector<double> values, double share);

/// Probability that a standard normal variable is at most z.
double normal_cumulative(double z);

/// The z that a standard normal variable stays below with this probability (above 0, below 1): to ten digits.
double normal_quantile(double probability);

}  // namespace foretrain
