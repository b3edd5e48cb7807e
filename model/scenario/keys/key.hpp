// A key of a file: its name, its values, its default, its meaning. The tables of all
// keys (keys.hpp) are written with the words of this file. Readers announce a mapping's keys by its table alone, so
// that a key without a description cannot be read; help, reference page and schemas are made from the same tables.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "model/base/units.hpp"
#include "model/base/words.hpp"

namespace foretrain {

/// Whether a quantity of zero makes sense.
enum class Zero { allowed, refused };

struct IntegerRange {
  std::int64_t minimum = 1;
  std::int64_t maximum = std::numeric_limits<std::int32_t>::max();
};

struct Cluster;
struct Plan;
struct TrainWorkload;

}  // namespace foretrain

namespace foretrain::keys {

struct Mapping;

/// Values that decide whether a key has an effect.
struct Situation {
  const Cluster& cluster;
  const Plan& plan;
  const TrainWorkload* train = nullptr;  ///< null: another kind of work
  bool is_alone = true;                  ///< nothing but the scenario's own work is on the network
};

/// When a key that is stated changes nothing, and why. "{zero}" and "{execution}" in the reason are the plan's.
struct Ignored {
  std::string_view why;
  bool (*in)(const Situation& one);
};

/// A key that frameworks set if it is left out.
struct FrameworkSetting {
  bool (*means_something)(const Situation& one);
  bool asked_of_all = false;  ///< all plans have the setting, although it means nothing to some
  bool decides_others = false;
};

/// The folder or table in which a name that stands for a file, or for an entry of one, is looked up.
enum class Catalogue {
  nothing,
  node,
  gpu,
  fabric,
  model,
  run,
  calibration,
  trainer,
  card,
  processor,
  storage,
  link,
  bucket_rule
};

/// One form that a value may have.
struct Form {
  enum class Kind { whole, number, flag, word, quantity, text, name, mapping };
  /// by_name: a mapping whose keys are names that the file chooses.
  enum class Shape { one, list, one_or_list, list_of_lists, by_name };

  Kind kind = Kind::text;
  Shape shape = Shape::one;
  std::string_view unit = {};                    ///< quantity: one of its dimension's units
  std::span<const std::string_view> words = {};  ///< word
  const Mapping* mapping = nullptr;              ///< mapping; name: its keys, beside `preset`
  Catalogue catalogue = Catalogue::nothing;      ///< name
};

/// The forms that a value may have.
struct Value {
  std::array<Form, 3> all = {};
  std::size_t count = 1;

  [[nodiscard]] constexpr std::span<const Form> forms() const { return {all.data(), count}; }
};

struct Key;

/// A record that the keys of a mapping fill.
struct Record {
  void* record = nullptr;
  const void* type = nullptr;  ///< type_of_record
};

struct Member {
  const void* record = nullptr;  ///< type_of_record; null: what the key means is its reader's to say
  /// The value, or one of a list's, of which `item` is the place. Throws UnitError for what the key may not be.
  void (*set)(void* record, std::string_view text, const Key& key, std::size_t item) = nullptr;
  Record (*part)(void* record) = nullptr;  ///< what a mapping as the value fills
  /// Value in a record, or in a new one if null; empty if there is none.
  std::string (*written)(const void* record, const Key& key) = nullptr;
};

/// Stands for a type of record: its address.
template <typename Record>
inline constexpr char type_of_record = 0;

struct Key {
  std::string_view name = {};
  Value value = {};
  std::string_view usual = {};    ///< what holds without it; "needed" where it must be there, empty where nothing holds
  std::string_view meaning = {};  ///< a sentence
  std::string_view together = {};  ///< with what it goes together, where that matters
  std::string_view title = {};     ///< at the axes of pictures, where the name alone says too little
  IntegerRange range = {};         ///< what a whole number that fills a member may be
  std::optional<Zero> zero = {};   ///< whether what else fills one may be zero; where left out, numbers may
  Member member = {};
  const FrameworkSetting* framework = nullptr;  ///< null: no framework decides it
  std::array<const Ignored*, 4> ignored = {};   ///< the first that holds is reported

  [[nodiscard]] constexpr bool needed() const { return usual == "needed"; }
  /// The row with another part. It stands before its users: clang 16 takes it for undefined in constants otherwise.
  template <typename T>
  [[nodiscard]] constexpr Key changed(T Key::*part, const T& other) const {
    Key row = *this;
    row.*part = other;
    return row;
  }
  /// The row with a range, with whether zero makes sense, or with other words for what holds without it.
  [[nodiscard]] constexpr Key in(const IntegerRange& allowed) const { return changed(&Key::range, allowed); }
  [[nodiscard]] constexpr Key with(Zero allowed) const { return changed(&Key::zero, std::optional(allowed)); }
  [[nodiscard]] constexpr Key or_else(std::string_view otherwise) const { return changed(&Key::usual, otherwise); }
  [[nodiscard]] constexpr Key as(std::string_view other) const { return changed(&Key::name, other); }
  [[nodiscard]] constexpr Key of(const Value& values) const { return changed(&Key::value, values); }
  [[nodiscard]] constexpr Key beside(std::string_view other) const { return changed(&Key::together, other); }
};
/// What rows have in common whose quantity or number may be zero, or may not.
inline constexpr Key may_be_zero{.zero = Zero::allowed}, above_zero{.zero = Zero::refused};

/// Further keys of a mapping in which a key has one of some words.
struct Variant {
  std::string_view words;  ///< separated by blanks
  const Mapping* keys = nullptr;
};

struct Mapping {
  std::string_view name;  ///< what people call the mapping
  std::span<const Key> keys;
  std::string_view decides = {};           ///< the key whose word chooses the variant
  std::span<const Variant> variants = {};  ///< none: the keys are all that there are
};

constexpr Value operator|(Value left, const Value& right) {
  for (const Form& form : right.forms()) left.all[left.count++] = form;
  return left;
}

inline constexpr Value whole{{Form{Form::Kind::whole}}};
inline constexpr Value number{{Form{Form::Kind::number}}};
inline constexpr Value flag{{Form{Form::Kind::flag}}};
inline constexpr Value text{{Form{Form::Kind::text}}};

/// "25 MB": a number with a unit of the same dimension as this one.
constexpr Value quantity(std::string_view unit) { return {{Form{.kind = Form::Kind::quantity, .unit = unit}}}; }
/// One of some words.
constexpr Value words(std::span<const std::string_view> known) {
  return {{Form{.kind = Form::Kind::word, .words = known}}};
}
namespace detail {
/// A literal as an argument of a template.
template <std::size_t size>
struct Literal {
  consteval Literal(const char (&literal)[size]) { std::copy_n(literal, size, text); }
  char text[size] = {};
};
template <Literal... word>
inline constexpr std::array<std::string_view, sizeof...(word)> literals = {word.text...};
}  // namespace detail
template <detail::Literal... word>
inline constexpr Value one_of = words(detail::literals<word...>);
/// A value of an enumeration, by its name.
template <typename E>
inline constexpr Value word = words(names_of<E>);

namespace detail {
template <const auto& values>
inline constexpr auto some_names = [] {
  std::array<std::string_view, values.size()> found;
  for (std::size_t i = 0; i < values.size(); ++i) found[i] = foretrain::name(values[i]);
  return found;
}();
}  // namespace detail
/// One of these values of an enumeration, by its name.
template <const auto& values>
inline constexpr Value word_among = words(detail::some_names<values>);

constexpr Value mapping(const Mapping& keys) { return {{Form{.kind = Form::Kind::mapping, .mapping = &keys}}}; }
/// A mapping of rows that no other file of tables needs.
template <const auto& rows, detail::Literal name>
inline constexpr Mapping mapping_with{.name = name.text, .keys = rows};
template <const auto& rows, detail::Literal name>
inline constexpr Value mapping_of = mapping(mapping_with<rows, name>);
/// A name of the catalogue or the path of a file.
constexpr Value named(Catalogue catalogue) { return {{Form{.kind = Form::Kind::name, .catalogue = catalogue}}}; }
/// The same, or a mapping: all keys, or some beside `preset: NAME`.
constexpr Value named(Catalogue catalogue, const Mapping& keys) {
  return {{Form{.kind = Form::Kind::name, .mapping = &keys, .catalogue = catalogue}}};
}

constexpr Value shaped(Value value, Form::Shape shape) {
  for (std::size_t i = 0; i < value.count; ++i) value.all[i].shape = shape;
  return value;
}
constexpr Value list(const Value& value) { return shaped(value, Form::Shape::list); }
constexpr Value one_or_list(const Value& value) { return shaped(value, Form::Shape::one_or_list); }
constexpr Value list_of_lists(const Value& value) { return shaped(value, Form::Shape::list_of_lists); }
constexpr Value by_name(const Value& value) { return shaped(value, Form::Shape::by_name); }

/// The quantity that a key's text stands for. Throws UnitError, also for a time longer than a year.
template <typename Q>
Q parse_value(std::string_view text) {
  const Q value = parse_quantity<Q>(text);
  if constexpr (std::is_same_v<Q, Seconds>) {
    if (value > Seconds(365.0 * 86400.0)) throw UnitError("a time longer than a year", "at most 365 days");
  }
  return value;
}

}  // namespace foretrain::keys
