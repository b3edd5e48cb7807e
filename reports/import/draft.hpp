// A YAML document on its way out of an importer: values with the place in the imported file that says so, and a comment
// behind each.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/csv.hpp"
#include "model/base/error.hpp"
#include "model/scenario/overrides.hpp"
#include "model/scenario/yaml_document.hpp"
#include "reports/import/importer.hpp"

namespace foretrain {

/// A setting of another tool's configuration.
struct ForeignSetting {
  std::string key;    ///< dotted, in the words of its tool
  std::string value;  ///< empty where the key stands alone (a flag of a command line)
  SourcePosition where;
  std::string written = {};  ///< the key as the file has it, where its tool has renamed it since
};

/// "--micro-batch-size 1": how comments name a setting.
std::string named(const ForeignSetting& setting);

/// A text, or a list or mapping.
struct DraftValue {
  DraftValue(YamlNode value) : node(std::move(value)) {}
  DraftValue(std::string text) : node(yaml_scalar(std::move(text), {})) {}
  DraftValue(const char* text) : DraftValue(std::string(text)) {}
  YamlNode node;
};

class Draft {
 public:
  /// The user's values (ImportInput::overrides) replace those of the file.
  explicit Draft(const ImportInput& input);

  /// Writes a value where the dotted key is not written yet, making mappings on the way. `comment` is printed behind it
  /// (behind "line N: ", where the place has a line).
  void set(const std::string& key, DraftValue value, const SourcePosition& where, const std::string& comment);
  /// As a setting says; `more` stands behind its name.
  void set(const std::string& key, DraftValue value, const ForeignSetting& says, const std::string& more = "");
  /// Writes a value of which the file says nothing; `why` ends up behind "assumed: ".
  void assume(const std::string& key, DraftValue value, const std::string& why);
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
  /// Notes a setting of the file that the document lacks; predictions repeat it.
  void leave_out(const SourcePosition& where, const std::string& what);
  /// A setting that the importer does not know: whether it matters is not known either.
  void not_understood(const SourcePosition& where, const std::string& what);

  /// Puts the user's values in. To be called once, before the document is read.
  void apply_overrides();
  [[nodiscard]] const YamlNode& document() const { return document_; }
  /// The document for people, and which importer made it.
  [[nodiscard]] std::string text(std::string_view importer) const;

 private:
  void apply(const Override& override);
  /// Whether an override says the key, or one above it.
  [[nodiscard]] bool is_said_by_user(std::string_view key) const;

  std::string file_;
  std::vector<Override> overrides_;
  YamlNode document_;
  std::map<std::string, std::string> comments_;  ///< by dotted key; of items "key[3]"
  std::vector<std::pair<std::string, std::string>> assumed_;
  std::vector<std::string> notes_, left_out_, not_understood_;
};

/// The value of a key in a document, with the mappings above it; made at `where` where there is none.
YamlNode& place_of(YamlNode& document, std::string_view dotted_key, const SourcePosition& where);

/// [a, b] and { key: value } made of texts or of values, all at one place.
YamlNode yaml_list(const std::vector<std::string>& items, const SourcePosition& where = {});
YamlNode yaml_nodes(const std::vector<std::pair<std::string, YamlNode>>& entries, const SourcePosition& where = {});
YamlNode yaml_entries(const std::vector<std::pair<std::string, std::string>>& entries,
                      const SourcePosition& where = {});

/// The document with comments behind its lines, from a column on, by dotted key; of items "key[3]".
std::string yaml_text(const YamlNode& document, const std::map<std::string, std::string>& comments, int column = 0);
/// Remarks as lines of comments.
std::string as_comments(const std::vector<std::string>& remarks);

/// The value on one line, as YAML reads it back.
std::string flow_text(const YamlNode& node);

/// Every key that a scenario says but its name and what is assumed, with its value as a table's cell has it.
using Cells = NamedCells;
void add_cells(const YamlNode& node, const std::string& path, Cells& cells);
/// A table (CSV) of rows' cells, its columns in the order in which rows have them, measured values and the source last.
std::string table_of(const std::vector<Cells>& rows);

/// Without what turns letters bold or coloured on a terminal: ESC [ … m.
std::string without_colours(std::string_view text);

/// Line and column of a byte.
SourcePosition position_in(std::string_view text, std::size_t offset, const std::string& file);

/// A draft of a scenario read as `predict` would read it, and printed.
std::string finished_scenario(Draft& draft, std::string_view importer);

}  // namespace foretrain
