// What importers ask of the bytes that they get.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "model/scenario/yaml_document.hpp"
#include "reports/import/importer.hpp"

namespace foretrain {

/// Throws ScenarioError unless it is UTF-8 text of the length that people write: at most 4 MB.
void require_config_text(const ImportInput& input);

/// The file's name without folder and ending.
std::string file_stem(const ImportInput& input);

/// A configuration in JSON or YAML; `what` says what it should be. Throws ScenarioError for malformed text and for
/// anything but a mapping.
YamlNode parse_config(const ImportInput& input, const std::string& what);

/// What parsing JSON threw, at its place of the file; `start`: where in the text parsing began.
[[noreturn]] void refuse_json(const nlohmann::json::exception& error, std::string_view text, const std::string& file,
                              const std::string& expected, std::size_t start = 0);

}  // namespace foretrain
