// Names and values of keys that stay accepted, in a document by those of today (keys/foreign_names.def).
#pragma once

#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// Calls a scenario's keys and values by our names; of two names of one key, what the command line or a table states
/// holds. Throws ScenarioError where one file states both.
void use_our_names(YamlNode& document);

/// The same in a framework's file.
void use_our_names_of_settings(YamlNode& document);

}  // namespace foretrain
