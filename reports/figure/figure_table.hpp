// A figure's series: their names, and what is drawn of them as a table.
#pragma once

#include <string>
#include <vector>

#include "reports/figure/figure.hpp"

namespace foretrain {

/// Names the series anew, in the order in which legends and tables name them; where there are fewer names, the others
/// keep theirs. Throws UsageError where there are more.
void name_series(Figure& figure, const std::vector<std::string>& names);

/// A row for each point and bar: its panel, its series, and plain numbers in the units that the header names. A column
/// that only other panels have is empty.
std::string to_csv(const Figure& figure);

}  // namespace foretrain
