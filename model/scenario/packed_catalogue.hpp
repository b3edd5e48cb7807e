// The trees of the catalogue's files as they were when the program was built: reading them takes a tenth of parsing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// All files of a folder but scenarios, packed.
std::string pack_catalogue(const std::filesystem::path& folder);

/// The tree of a file of data_directory() that says the same as then. Nothing for any other, nor without
/// catalogue.packed beside the program where it was built, or beside the catalogue that was installed with it.
std::optional<YamlNode> packed_tree(const std::string& path);

}  // namespace foretrain
