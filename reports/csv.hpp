// Results as cells of a table of cases.
#pragma once

#include <string>
#include <vector>

#include "model/result.hpp"

namespace foretrain {

/// "predicted.step_time", …: the columns that a sweep adds; the last one, "predicted.error", says why a row has none.
const std::vector<std::string>& predicted_columns();

/// One cell per column, with units where the quantity has one and every digit; empty where the result says nothing.
std::vector<std::string> predicted_cells(const Result& result);

/// The cells of a prediction that failed.
std::vector<std::string> failed_cells(const std::string& why);

}  // namespace foretrain
