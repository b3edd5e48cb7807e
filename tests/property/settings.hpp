// A scenario as single settings, of which each can be left out: what random scenarios are made of, and shrink by.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "model/scenario/scenario.hpp"

namespace foretrain::test {

/// Dotted key → value as YAML writes it. An element of a list is "KEY[0]".
using Settings = std::map<std::string, std::string>;

std::string yaml_of(const Settings& settings);
Scenario scenario_of(const Settings& settings);

/// The violation, if any.
using Violation = std::optional<std::string>;
using Property = std::function<Violation(const Settings&)>;

/// Nothing where the scenario, or what the property makes of it, is impossible.
Violation check(const Property& property, const Settings& settings);

/// The smallest scenario found that still violates the property: settings are left out, lowered and halved one by one.
Settings shrink(Settings settings, const Property& property);

}  // namespace foretrain::test
