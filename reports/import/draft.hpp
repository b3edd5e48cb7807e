// A YAML document on its way out of an importer: values with the place in the imported file that says so, and a comment
// behind each.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"
#include "model/scenario/overrides.hpp"
#include "model/scenario/yaml_document.hpp"
#include "reports/import/importer.hpp"

namespace foretrain {

class Draft {
 public:
  /// Where the user says a value (ImportInput::overrides), what the file says of it does not count.
  explicit Draft(const ImportInput& input);

  /// Writes a value where the dotted key is not written yet, making mappings on the way. `comment` is printed behind it
  /// (behind "line N: ", where the place has a line).
  void set(const std::string& key, YamlNode value, const SourcePosition& where, const std::string& comment);
  void set(const std::string& key, std::string value, const SourcePosition& where, const std::string& comment);
  /// Writes a value of which the file says nothing; `why` ends up behind "assumed: ".
  void assume(const std::string& key, YamlNode value, const std::string& why);
  void assume(const std::string& key, std::string value, const std::string& why);
  /// The same for a value that is written otherwise: predictions repeat it (`assumed`), unless the user says the key.
  void note_assumed(const std::string& key, const std::string& why);
  /// Adds an item to a list, made where it is not there; `comment` is printed behind it as it stands.
  void append(const std::string& key, YamlNode item, const SourcePosition& where, const std::string& comment = "");

  /// Whether the key, or one above it, is written already, or will be by the user.
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] std::string scalar(std::string_view key, const std::string& fallback = "") const;
  [[nodiscard]] SourcePosition nowhere() const { return {file_, 0, 0}; }

  /// A remark at the top of the file.
  void note(std::string remark) { notes_.push_back(std::move(remark)); }
  /// What the file says and the document does not; predictions repeat it.
  void leave_out(const SourcePosition& where, const std::string& what);

  /// Puts the user's values in. To be called once, before the document is read.
  void apply_overrides();
  [[nodiscard]] const YamlNode& document() const { return document_; }
  /// The document for people; `title` says what made it.
  [[nodiscard]] std::string text(const std::string& title) const;

 private:
  void apply(const Override& override);
  /// Whether an override says the key, or one above it.
  [[nodiscard]] bool is_said_by_user(std::string_view key) const;

  std::string file_;
  std::vector<Override> overrides_;
  YamlNode document_;
  std::map<std::string, std::string> comments_;  ///< by dotted key; of items "key[3]"
  std::vector<std::pair<std::string, std::string>> assumed_;
  std::vector<std::string> notes_, left_out_;
};

/// [a, b] and { key: value } made of texts or of values, all at one place.
YamlNode yaml_list(const std::vector<std::string>& items, const SourcePosition& where = {});
YamlNode yaml_nodes(const std::vector<std::pair<std::string, YamlNode>>& entries, const SourcePosition& where = {});
YamlNode yaml_entries(const std::vector<std::pair<std::string, std::string>>& entries,
                      const SourcePosition& where = {});

/// The value on one line, as YAML reads it back.
std::string flow_text(const YamlNode& node);

/// Line and column of a byte.
SourcePosition position_in(std::string_view text, std::size_t offset, const std::string& file);

/// A draft of a scenario read as `predict` would read it, and printed.
std::string finished_scenario(Draft& draft, const std::string& title);

}  // namespace foretrain
