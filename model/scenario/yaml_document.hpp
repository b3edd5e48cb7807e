// Reads files as values with their positions. Above it: typed views (yaml_reader.hpp), settings from the command line
// (overrides.hpp), names of the catalogue (catalogue.hpp), unknown keys (document_walk.hpp). The readers stand above,
// by what they read: hardware/, model/, workload/, plan/; load/ puts a scenario together and checks it. Invariant:
// every complaint has file, line, column and key.
//
// yaml_document.cpp is the only place that sees libyaml; everything that could surprise (aliases, tags, several
// documents, duplicate keys, bottomless nesting) is refused there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"

namespace foretrain {

/// Deepest nesting of a document, and most words of a dotted key.
inline constexpr std::size_t deepest_nesting = 64;

struct YamlEntry;

/// A value. Null is an absent value (`key:` with nothing behind it, or `null`).
struct YamlNode {
  enum class Kind { null, scalar, sequence, mapping };
  Kind kind = Kind::null;
  std::string scalar;              ///< scalar: the text without quotes
  std::vector<YamlNode> items;     ///< sequence
  std::vector<YamlEntry> entries;  ///< mapping, in the order of the file
  SourcePosition where;

  [[nodiscard]] bool is_null() const { return kind == Kind::null; }
  [[nodiscard]] bool is_scalar() const { return kind == Kind::scalar; }
  [[nodiscard]] bool is_sequence() const { return kind == Kind::sequence; }
  [[nodiscard]] bool is_mapping() const { return kind == Kind::mapping; }
  /// The entry with this key, or nullptr (also when this is no mapping).
  [[nodiscard]] const YamlEntry* find(std::string_view key) const;
  [[nodiscard]] YamlEntry* find(std::string_view key);
  /// The value of a dotted key ("plan.sync.bucket"), or nullptr.
  [[nodiscard]] const YamlNode* at(std::string_view dotted_key) const;
  /// Takes the entry with a dotted key out, if there is one.
  void erase(std::string_view dotted_key);
  /// "a mapping", "a list", "a value", "nothing".
  [[nodiscard]] std::string_view kind_name() const;
  [[nodiscard]] std::uint64_t hash() const;
  bool operator==(const YamlNode&) const;
};

struct YamlEntry {
  std::string key;
  SourcePosition where;  ///< where the key stands
  YamlNode value;

  bool operator==(const YamlEntry& other) const { return key == other.key && value == other.value; }
};

YamlNode yaml_scalar(std::string text, SourcePosition where);
YamlNode yaml_mapping(SourcePosition where);
/// A value as a file may say it in one line, without quotes.
std::string in_one_line(const YamlNode& node);
/// Says of a value, and of all within it, that it stands there.
void set_position(YamlNode& node, const SourcePosition& where);

/// Parses one YAML document. `file` is named in errors. Throws ScenarioError for malformed YAML, an empty text, more
/// than one document, duplicate keys, keys that are no plain words, anchors, aliases, tags, values with control
/// characters, nesting deeper than `deepest_nesting` and more than 200,000 values.
YamlNode parse_yaml(std::string_view text, const std::string& file);

/// Reads and parses a file; kept for the life of the session and read again only when the file has changed.
const YamlNode& cached_yaml_file(const std::string& path);

/// All files of a folder but scenarios, packed: reading their trees takes a tenth of parsing.
std::string pack_catalogue(const std::filesystem::path& folder);

/// The tree of a file of data_directory() that says the same as then. Nothing for any other, nor without
/// catalogue.packed beside the program where it was built, or beside the catalogue that was installed with it.
std::optional<YamlNode> packed_tree(const std::string& path);

}  // namespace foretrain
