// Typed views of a YAML tree. A Field is one value with its dotted path, a MappingReader a mapping whose keys are known
// beforehand. Every complaint is a ScenarioError with file, line, column and the dotted key.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// A text of an error, made of values, which the compiler checks; without values it stands as it is.
template <typename... Args>
struct TextOf {
  using Type = fmt::format_string<const Args&...>;
  static std::string made(Type text, const Args&... args) { return fmt::format(text, args...); }
};
template <>
struct TextOf<> {
  using Type = std::string_view;
  static std::string made(Type text) { return std::string(text); }
};
template <typename... Args>
using Text = typename TextOf<Args...>::Type;

/// A session that has this part puts down in it which keys readers ask for.
struct AskedKeys {
  std::set<const keys::Key*> keys;
};

class MappingReader;

/// One value of a document, which must outlive it unless it was moved here.
class Field {
 public:
  Field(const YamlNode& node, std::string path) : node_(&node), path_(std::move(path)) {}
  Field(YamlNode&& node, std::string path)
      : owned_(std::make_shared<const YamlNode>(std::move(node))), node_(owned_.get()), path_(std::move(path)) {}

  [[nodiscard]] const YamlNode& node() const { return *node_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const SourcePosition& where() const { return node_->where; }
  [[nodiscard]] bool is_scalar() const { return node_->is_scalar(); }
  [[nodiscard]] bool is_mapping() const { return node_->is_mapping(); }
  [[nodiscard]] bool is_sequence() const { return node_->is_sequence(); }

  /// The text of a scalar.
  [[nodiscard]] const std::string& text() const;
  /// The value as the row says (keys/member.hpp), by default that of the mapping it was found in: its range, whether it
  /// may be zero, and its words.
  template <typename T>
  [[nodiscard]] T as(const keys::Key& row) const {
    return parse([&](const std::string& text) { return keys::parsed<T>(text, row); });
  }
  template <typename T>
  [[nodiscard]] T as() const {
    static constexpr keys::Key any;
    return as<T>(row_ == nullptr ? any : *row_);
  }
  /// The value of one of a mapping's entries.
  [[nodiscard]] Field below(const YamlEntry& entry) const;
  /// The value of a key, whichever keys the mapping may have; nothing where it is not stated.
  [[nodiscard]] std::optional<Field> find(std::string_view key) const;
  /// The same of a key that must be there. Throws ScenarioError.
  [[nodiscard]] Field at(std::string_view key, std::string_view expected = "a value for it") const;
  /// A mapping with this table's keys and those of the variants that its deciding key chooses; `word`: where it is left
  /// out.
  [[nodiscard]] MappingReader mapping(const keys::Mapping& table, std::string_view word = "") const;
  /// The same with the table of the value's row.
  [[nodiscard]] MappingReader mapping(std::string_view word = "") const;
  /// Another value in the place of this one, with its row.
  [[nodiscard]] Field replaced(YamlNode&& node) const;
  /// The values of a list, paths "key[0]", "key[1]", ….
  [[nodiscard]] std::vector<Field> list() const;
  /// Like list(), where a lone scalar counts as a list of one.
  [[nodiscard]] std::vector<Field> list_or_one() const;
  /// The values of a list where the row has one, and the one that may stand in its place.
  [[nodiscard]] std::vector<Field> values(const keys::Key& row) const;
  [[nodiscard]] std::vector<Field> values() const { return values(*row_); }
  /// Complains about what is no word, flag or whole number where the row's first form is one.
  void require_form() const;

  /// Puts the value into the member of a record that the key fills.
  void fill(const keys::Key& key, void* record) const;

  /// Runs a parser of model/base/units on the text and adds the position to its complaints.
  template <typename Parse>
  auto parse(const Parse& parser) const;

  [[noreturn]] void fail(std::string got, std::string expected) const;
  template <typename... Args>
  void fail_if(bool wrong, Text<Args...> got, Text<Args...> expected, const Args&... args) const {
    if (wrong) fail(TextOf<Args...>::made(got, args...), TextOf<Args...>::made(expected, args...));
  }

 private:
  friend class MappingReader;
  /// A value within this one, and its row.
  [[nodiscard]] Field within(const YamlNode& node, std::string path, const keys::Key* row = nullptr) const;

  std::shared_ptr<const YamlNode> owned_ = nullptr;
  const YamlNode* node_;
  std::string path_;
  const keys::Key* row_ = nullptr;
};

/// A mapping. Asking for a key that was not announced to the constructor is an InternalError.
class MappingReader {
 public:
  /// Throws UnknownKeys for keys that are not among these (document_walk.hpp), and ScenarioError for one without a
  /// value or without what it goes together with.
  MappingReader(const Field& field, std::vector<const keys::Key*> keys);

  [[nodiscard]] const Field& field() const { return field_; }
  [[nodiscard]] const std::vector<const keys::Key*>& keys() const { return keys_; }
  [[nodiscard]] bool has(std::string_view key) const;
  /// Throws ScenarioError when the key is missing.
  [[nodiscard]] Field operator[](std::string_view key) const;
  [[nodiscard]] std::optional<Field> find(std::string_view key) const;
  /// The values of a list, or the one that may stand in its place; none where the key is not stated.
  [[nodiscard]] std::vector<Field> list(std::string_view key) const;
  /// Position of a key; the begin of the mapping if it was not written.
  [[nodiscard]] SourcePosition where(std::string_view key) const;
  [[nodiscard]] std::string path(std::string_view key) const;

  /// Fills the members of a record that keys of this mapping are bound to (keys::member), where they are stated.
  template <typename Record>
  void fill(Record& record) const {
    fill(keys::Record{&record, &keys::type_of_record<Record>});
  }
  void fill(const keys::Record& record) const;
  /// The same of a new record.
  template <typename Record>
  [[nodiscard]] Record filled() const {
    Record record;
    fill(record);
    return record;
  }

  /// A key's value, or what holds without it.
  template <typename T>
  [[nodiscard]] T value_or(std::string_view key, T otherwise) const {
    const std::optional<Field> value = find(key);
    return value ? value->as<T>() : otherwise;
  }

  /// Complains about a key's value (or, when it is not there, about the mapping).
  [[noreturn]] void fail(std::string_view key, std::string got, std::string expected) const;
  template <typename... Args>
  void fail_if(bool wrong, std::string_view key, Text<Args...> got, Text<Args...> expected, const Args&... args) const {
    if (wrong) fail(key, TextOf<Args...>::made(got, args...), TextOf<Args...>::made(expected, args...));
  }
  /// Complains about the first of these keys that is stated.
  void refuse(std::initializer_list<std::string_view> keys, std::string_view got, std::string_view expected) const;

 private:
  /// The row of a key that may be asked for.
  [[nodiscard]] const keys::Key& row_of(std::string_view key) const;
  /// Complains of a key whose companion (keys::companion_of) is not there. What frameworks decide is their readers' to
  /// check, and stated keys that change nothing are no errors.
  void require_companion(const keys::Key& key, const Field& value) const;

  Field field_;
  std::vector<const keys::Key*> keys_;
};

/// Path of a key below another path.
std::string join_path(std::string_view path, std::string_view key);

template <typename Parse>
auto Field::parse(const Parse& parser) const {
  try {
    return parser(text());
  } catch (const UnitError& error) {
    fail(error.got(), error.expected());
  }
}

}  // namespace foretrain
