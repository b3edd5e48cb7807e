// Results as JSON: the names that scripts depend on.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "model/result.hpp"

namespace foretrain {

/// One prediction as a JSON object, two spaces of indentation, no line end. Times in seconds, sizes in bytes, rates per
/// second; a number that is not known or not finite is null. The timeline is left out.
std::string to_json(const Result& result);

/// Several predictions as a JSON array.
std::string to_json(const std::vector<Result>& results);

/// The inverse of to_json for one prediction (null becomes absent, or NaN where a number must be). Throws
/// ScenarioError, with the key and without a file, for a text that to_json does not write.
Result result_from_json(std::string_view text);

/// The nearest whole number; what no integer holds stays as it is, and what is not finite is null.
nlohmann::ordered_json whole_number(double value);

/// An object that several reports contain: a GPU's memory, with the node's where `host`.
nlohmann::ordered_json footprint_json(const MemoryFootprint& m, bool host);

/// A schema (draft 7) of one result: what all kinds of work have, and any one kind's own.
std::string result_schema();

}  // namespace foretrain
