// The keys of a kind of file as JSON Schema, by which editors complete and check files while they are written.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/scenario/keys/keys.hpp"

namespace foretrain {

/// Names that a value may have, offered as examples; none where the catalogue has no list of them.
using NamesOf = std::function<std::vector<std::string>(keys::Catalogue)>;

/// A schema (draft 7) of such files.
std::string keys_schema(const keys::FileKind& file, const NamesOf& names_in);

}  // namespace foretrain
