// The YAML that most files are written in, read ten times as fast as by libyaml.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// The tree of a text of plain keys, values in one line each, and comments, as libyaml reads it. Nothing for a text
/// that has anything else, or that may be wrong: libyaml says what.
std::optional<YamlNode> read_plain_yaml(std::string_view text, const std::string& file);

}  // namespace foretrain
