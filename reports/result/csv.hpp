// Results as cells of a table of cases.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/result.hpp"

namespace foretrain {

/// "predicted.step_time_s", …: the columns that a sweep adds, their unit in their name; the last one,
/// "predicted.error", says why a row has none.
const std::vector<std::string>& predicted_columns();

/// Kind of a column's cells: numbers and flags in predicted.* columns, else texts.
enum class CellKind { text, number, flag };
CellKind kind_of_column(std::string_view name);

/// One cell per column: plain numbers with every digit, `true` or `false`; empty where the result says nothing.
std::vector<std::string> predicted_cells(const Result& result);

/// The cells of a prediction that failed.
std::vector<std::string> failed_cells(const std::string& why);

/// The number of a cell in base units, whatever unit it has: 4e7 of "40 MB". Nothing where it is no quantity.
std::optional<double> magnitude(std::string_view cell);

}  // namespace foretrain
