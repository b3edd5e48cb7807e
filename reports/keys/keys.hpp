// The keys that files may have, for people and for programs; and as JSON Schema, by which editors complete and check
// files while they are written.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/keys/keys.hpp"

namespace foretrain {

/// The keys whose dotted path begins with `prefix`: under each what it means, what it may be, what holds without it.
/// Empty where there are none.
std::string keys_text(std::string_view prefix);
/// The same for programs: a JSON array.
std::string keys_json(std::string_view prefix);
/// All keys as a page of reference (reports/docs/keys.md).
std::string keys_markdown();

/// Everything about a key: a dotted path, a last word alone (every place where it stands), or another program's name
/// for it. Nothing where there is none.
std::optional<std::string> key_help(std::string_view key);
/// The key that was probably meant.
std::optional<std::string> nearest_key(std::string_view key);

/// Names that a value may have, offered as examples; none where the catalogue has no list of them.
using NamesOf = std::function<std::vector<std::string>(keys::Catalogue)>;

/// A schema (draft 7) of such files.
std::string keys_schema(const keys::FileKind& file, const NamesOf& names_in);

}  // namespace foretrain
