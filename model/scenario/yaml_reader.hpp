// Typed views of a YAML tree. A Field is one value with its dotted path, a MappingReader a mapping whose keys are known
// beforehand. Every complaint is a ScenarioError with file, line, column and the dotted key.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// A text made of values, which the compiler checks.
template <typename... Args>
using Format = fmt::format_string<const std::type_identity_t<Args>&...>;

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
  [[nodiscard]] std::int64_t integer(IntegerRange range = {}) const;
  [[nodiscard]] double number(Zero zero = Zero::allowed) const;
  [[nodiscard]] bool flag() const;
  /// A flag with words of its own for false and true.
  [[nodiscard]] bool flag(std::string_view no, std::string_view yes) const;
  /// One of these words, and its place among them.
  [[nodiscard]] std::size_t word(std::span<const std::string_view> words) const;
  /// See parse_quantity for the units.
  template <typename Q>
  [[nodiscard]] Q quantity(Zero zero = Zero::refused) const;
  /// A value of an enumeration, by its name; only `allowed` ones where some are named.
  template <typename E>
  [[nodiscard]] E choice(std::span<const E> allowed = {}) const;
  /// The value of one of a mapping's entries.
  [[nodiscard]] Field below(const YamlEntry& entry) const;
  /// The value of a key, whichever keys the mapping may have; nothing where it is not stated.
  [[nodiscard]] std::optional<Field> find(std::string_view key) const;
  /// The same of a key that must be there. Throws ScenarioError.
  [[nodiscard]] Field at(std::string_view key, std::string_view expected = "a value for it") const;
  template <std::same_as<keys::Mapping>... Tables>
  [[nodiscard]] MappingReader mapping(const Tables&... tables) const;
  /// A mapping with this table's keys and those of the variants that its deciding key chooses; `word`: where it is left
  /// out.
  [[nodiscard]] MappingReader chosen(const keys::Mapping& table, std::string_view word = "") const;
  /// The values of a list, paths "key[0]", "key[1]", ….
  [[nodiscard]] std::vector<Field> list() const;
  /// Like list(), where a lone scalar counts as a list of one.
  [[nodiscard]] std::vector<Field> list_or_one() const;

  /// Puts the value into the member of a record that the key fills.
  void fill(const keys::Key& key, void* record) const;

  /// Runs a parser of model/base/units on the text and adds the position to its complaints.
  template <typename Parse>
  auto parse(const Parse& parser) const;

  [[noreturn]] void fail(std::string got, std::string expected) const;
  void fail_if(bool wrong, std::string_view got, std::string_view expected) const;
  /// The same with texts that are made of values.
  template <typename... Args>
  requires(sizeof...(Args) > 0) void fail_if(bool wrong, Format<Args...> got, Format<Args...> expected,
                                             const Args&... args) const {
    if (wrong) fail(fmt::format(got, args...), fmt::format(expected, args...));
  }

 private:
  /// A value within this one.
  [[nodiscard]] Field within(const YamlNode& node, std::string path) const;

  std::shared_ptr<const YamlNode> owned_ = nullptr;
  const YamlNode* node_;
  std::string path_;
};

/// A mapping. Asking for a key that was not announced to the constructor is an InternalError.
class MappingReader {
 public:
  /// Throws UnknownKeys for keys that are not among these (document_walk.hpp), and ScenarioError for one without a
  /// value or without what it goes together with.
  MappingReader(const Field& field, std::vector<const keys::Key*> keys);

  [[nodiscard]] const Field& field() const { return field_; }
  [[nodiscard]] bool has(std::string_view key) const;
  /// Throws ScenarioError when the key is missing.
  [[nodiscard]] Field operator[](std::string_view key) const;
  [[nodiscard]] std::optional<Field> find(std::string_view key) const;
  /// Position of a key; the begin of the mapping if it was not written.
  [[nodiscard]] SourcePosition where(std::string_view key) const;
  [[nodiscard]] std::string path(std::string_view key) const;

  /// Fills the members of a record that keys of this mapping are bound to (keys::member), where they are stated.
  template <typename Record>
  void fill(Record& record) const {
    fill(keys::Record{&record, &keys::type_of_record<Record>});
  }
  void fill(const keys::Record& record) const;

  [[nodiscard]] std::int64_t integer_or(std::string_view key, std::int64_t fallback, IntegerRange range = {}) const {
    return value_or(key, fallback, [&](const Field& value) { return value.integer(range); });
  }
  [[nodiscard]] int int_or(std::string_view key, int fallback, IntegerRange range = {}) const {
    return static_cast<int>(integer_or(key, fallback, range));
  }
  [[nodiscard]] double number_or(std::string_view key, double fallback, Zero zero = Zero::allowed) const {
    return value_or(key, fallback, [&](const Field& value) { return value.number(zero); });
  }
  [[nodiscard]] bool flag_or(std::string_view key, bool fallback) const {
    return value_or(key, fallback, [](const Field& value) { return value.flag(); });
  }
  [[nodiscard]] bool flag_or(std::string_view key, bool fallback, std::string_view no, std::string_view yes) const {
    return value_or(key, fallback, [&](const Field& value) { return value.flag(no, yes); });
  }
  [[nodiscard]] std::string text_or(std::string_view key, std::string_view fallback) const {
    return value_or(key, std::string(fallback), [](const Field& value) { return value.text(); });
  }
  template <typename Q>
  [[nodiscard]] Q quantity_or(std::string_view key, Q fallback, Zero zero = Zero::refused) const {
    return value_or(key, fallback, [&](const Field& value) { return value.quantity<Q>(zero); });
  }
  template <typename E>
  [[nodiscard]] E choice_or(std::string_view key, E fallback,
                            std::type_identity_t<std::span<const E>> allowed = {}) const {
    return value_or(key, fallback, [&](const Field& value) { return value.choice<E>(allowed); });
  }

  /// Complains about a key's value (or, when it is not there, about the mapping).
  [[noreturn]] void fail(std::string_view key, std::string got, std::string expected) const;
  void fail_if(bool wrong, std::string_view key, std::string_view got, std::string_view expected) const;
  template <typename... Args>
  requires(sizeof...(Args) > 0) void fail_if(bool wrong, std::string_view key, Format<Args...> got,
                                             Format<Args...> expected, const Args&... args) const {
    if (wrong) fail(key, fmt::format(got, args...), fmt::format(expected, args...));
  }
  /// Complains about the first of these keys that is stated.
  void refuse(std::initializer_list<std::string_view> keys, std::string_view got, std::string_view expected) const;

 private:
  /// Returns `read` of a key's value, or the fallback if the key is missing.
  template <typename T, typename Read>
  T value_or(std::string_view key, T fallback, const Read& read) const {
    const std::optional<Field> value = find(key);
    return value ? read(*value) : fallback;
  }
  void require_known(std::string_view key) const;
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

template <std::same_as<keys::Mapping>... Tables>
MappingReader Field::mapping(const Tables&... tables) const {
  std::vector<const keys::Key*> known;
  known.reserve((std::size_t{0} + ... + tables.keys.size()));
  const auto add = [&](const keys::Mapping& table) {
    for (const keys::Key& key : table.keys) known.push_back(&key);
  };
  (add(tables), ...);
  return MappingReader(*this, std::move(known));
}

template <typename Q>
Q Field::quantity(Zero zero) const {
  const Q value = parse(keys::parse_value<Q>);
  if (zero == Zero::refused && !(value > Q(0.0))) fail("zero is impossible here", "a value above zero");
  return value;
}

template <typename E>
E Field::choice(std::span<const E> allowed) const {
  if (allowed.empty()) return static_cast<E>(word(names_of<E>));
  std::vector<std::string_view> words;
  for (const E value : allowed) words.push_back(name(value));
  return allowed[word(words)];
}

}  // namespace foretrain
