// The parts of a page as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "reports/page/page.hpp"
#include "reports/page/slices.hpp"

namespace foretrain {

using PageJson = nlohmann::ordered_json;

PageJson scaling_json(const ScalingPart& scaling);
PageJson roofline_json(const RooflineFigure& roofline);
PageJson links_json(const LinkUses& uses);
/// Columns of numbers, in microseconds; resources, names and categories by their place in a list.
PageJson slices_json(const std::vector<Slice>& slices);
/// What does not vary, and a column for each key that does: its texts, and its numbers in base units where all are
/// quantities. With the comparison of servers and rings where the sweep has both.
PageJson sweep_json(const std::string& name, const CsvTable& table);

/// An error's text without the place in a file before it.
std::string without_place(const std::string& error);

}  // namespace foretrain
