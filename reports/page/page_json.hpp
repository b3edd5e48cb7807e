// The parts of a page as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "reports/page/page.hpp"

namespace foretrain {

using PageJson = nlohmann::ordered_json;

/// A figure for figure.js: its panels with what lies in them, in the units of the axes.
PageJson figure_json(const Figure& figure);
/// Time, throughput, efficiency and, where there is a price, cost, a panel each.
Figure scaling_figure(const ScalingPart& scaling);
/// Their time over that of rings; without a panel where one of the two is missing.
Figure servers_figure(const CurveChart& steps);
PageJson result_figures(const PageJson& result);
PageJson explanation_figures(const PageJson& explanation);
PageJson memory_figures(const PageJson& memory);
PageJson accuracy_figure(const PageJson& accuracy);
Figure timeline_figure(const Result& result);
PageJson links_json(const LinkUses& uses);
/// A sweep's constant keys, and a column for each varied key: its texts, and its numbers in base units where all are
/// quantities. With the comparison of servers and rings where the sweep has both.
PageJson sweep_json(const std::string& name, const CsvTable& table);

/// An error's text without the place in a file before it.
std::string without_place(const std::string& error);

}  // namespace foretrain
