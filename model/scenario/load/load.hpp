// A scenario put together: in, its file, settings from the command line, the catalogue; out, a Scenario that is
// complete and possible. All readers are called from here, in the order hardware, workload, plan; checks.hpp says what
// no single key can tell.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/overrides.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Reads a scenario file, or one of scenarios/runs by its name. `overrides` are "KEY=VALUE" with dotted keys, applied
/// in order. Throws ScenarioError (file:line:column: key: what is wrong; what would be right).
Scenario load_scenario(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

/// The same from text; `file_name` is named in errors and the place from which relative paths start.
Scenario load_scenario_text(std::string_view text, const std::string& file_name,
                            const std::vector<std::string>& overrides = {});

/// The document that load_scenario reads, its overrides applied.
YamlNode scenario_document(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

/// The same from a document, whose overrides are already applied.
Scenario read_scenario(YamlNode document, std::string_view default_name);

/// Every key that the scenario may have, with the value that holds and where it comes from: what is stated (by whom and
/// where), what the framework does, what holds without the key.
std::vector<ResolvedSetting> resolved_values(const Scenario& scenario);

}  // namespace foretrain
