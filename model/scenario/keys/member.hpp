// Keys that fill members. A row such as
//   member<&Sync::servers>("Number of parameter servers.", {.range = {1, 100'000}})
//   needed<&Gpu::memory>("GB", "Size of its memory.")
//   part<&Plan::sync>(sync, "Gradient synchronisation.")
// says once what a key is. Its name and the type of its value are the member's, what a new record has is what holds
// without the key, and MappingReader::fill reads it. A value that is written in a way of its own has a parser in its
// row (parsed_by). Keys whose meaning hangs on other keys are rows without a member and lines of a reader.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/base/units.hpp"
#include "model/scenario/keys/key.hpp"

namespace foretrain::keys {

namespace detail {

/// The last word of "… [with auto pointer = &foretrain::Sync::overlap; …]".
template <auto pointer>
constexpr std::string_view name_of() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find_first_of(";]", text.find("pointer = ")));
  return text.substr(text.rfind(':') + 1);
}

template <typename T>
constexpr Value value_for() {
  if constexpr (std::is_same_v<T, bool>) return flag;
  if constexpr (std::is_enum_v<T>) return word<T>;
  if constexpr (std::is_same_v<T, std::string>) return text;
  if constexpr (std::is_integral_v<T>) return whole;
  if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string>)
    throw std::logic_error("the row of a quantity names its unit");
  return number;
}

constexpr std::span<const std::string_view> words_of(const Key& key) {
  for (const Form& form : key.value.forms()) {
    if (form.kind == Form::Kind::word) return form.words;
  }
  return {};
}

/// Numbers may be zero and quantities may not, unless the row says otherwise.
template <typename T>
constexpr bool refuses_zero(const Key& key) {
  return key.zero.value_or(std::is_same_v<T, double> ? Zero::allowed : Zero::refused) == Zero::refused;
}

}  // namespace detail

/// The value that a text stands for. Throws UnitError.
template <typename T>
T parsed(std::string_view text, const Key& key) {
  constexpr bool is_number = std::is_same_v<T, double>;
  const std::span<const std::string_view> words = detail::words_of(key);
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(words.empty() ? text : words[parse_word(text, words)]);
  } else if constexpr (std::is_same_v<T, bool>) {
    return words.empty() ? parse_flag(text) : parse_word(text, words) == 1;
  } else if constexpr (std::is_enum_v<T>) {
    return words.empty() ? static_cast<T>(parse_word(text, names_of<T>)) : *value_of<T>(words[parse_word(text, words)]);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(parse_integer(text, key.range.minimum, key.range.maximum));
  } else {
    T value;
    if constexpr (is_number) {
      if (key.value.all[0].kind == Form::Kind::whole) return static_cast<T>(parsed<std::int64_t>(text, key));
      value = parse_number(text);
    } else {
      value = parse_value<T>(text);
    }
    if (!detail::refuses_zero<T>(key) || value > T(0.0)) return value;
    throw UnitError("zero is impossible here", is_number ? "a number above zero" : "a value above zero");
  }
}

namespace detail {

/// A value as a file says it; empty where a file could not, for it stands for nothing: that there is no limit, say.
template <typename T>
std::string written(const T& value, const Key& key) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return std::string(words_of(key).empty() ? (value ? "true" : "false") : words_of(key)[value ? 1 : 0]);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(foretrain::name(value));
  } else if constexpr (std::is_integral_v<T>) {
    return std::cmp_less(value, key.range.minimum) ? "" : fmt::format("{}", value);
  } else if (refuses_zero<T>(key) && !(value > T(0.0))) {
    return "";
  } else if constexpr (std::is_same_v<T, double>) {
    return fmt::format("{}", value);
  } else {
    return value < T::infinity() ? write_in_unit(value.value(), key.value.all[0].unit) : "";
  }
}
template <typename T>
std::string written(const std::optional<T>& value, const Key& key) {
  return value ? written(*value, key) : "";
}
template <typename T>
std::string written(const std::vector<T>& values, const Key& key) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + written(value, key);
  return text.empty() ? "" : "[" + text + "]";
}

/// Puts the value, or one of a list's, into a member.
template <typename T, typename M>
void put(M& member, std::string_view text, const Key& key, std::size_t /*item*/) {
  member = parsed<T>(text, key);
}
template <typename T>
void put(std::vector<T>& member, std::string_view text, const Key& key, std::size_t item) {
  if (item == 0) member.clear();
  member.push_back(parsed<T>(text, key));
}

template <auto pointer, typename T, typename Owner, typename M>
constexpr Member member_of(M Owner::*) {
  return {&type_of_record<Owner>,
          [](void* record, std::string_view text, const Key& key, std::size_t item) {
            put<T>(static_cast<Owner*>(record)->*pointer, text, key, item);
          },
          nullptr,
          [](const void* record, const Key& key) {
            return record == nullptr ? written(Owner().*pointer, key)
                                     : written(static_cast<const Owner*>(record)->*pointer, key);
          }};
}

template <typename M, typename Owner>
M type_of(M Owner::*);
template <typename M, typename Owner>
M type_of(std::optional<M> Owner::*);
template <typename M, typename Owner>
M type_of(std::vector<M> Owner::*);

template <typename Owner, typename M>
Owner owner_of(M Owner::*);
template <typename Owner>
Owner filled_by(void (*)(Owner&, std::string_view));

template <typename M>
Record record_of(M& part) {
  return {&part, &type_of_record<M>};
}
template <typename M>
Record record_of(std::optional<M>& part) {
  return record_of(part ? *part : part.emplace());
}

}  // namespace detail

/// The row, with when its key means something: each is a FrameworkSetting or an Ignored.
template <const auto&... when>
constexpr Key with(Key row) {
  std::size_t reasons = 0;
  [[maybe_unused]] const auto add = [&row, &reasons](const auto& one) {
    if constexpr (std::is_same_v<decltype(one), const Ignored&>) row.ignored[reasons++] = &one;
    if constexpr (std::is_same_v<decltype(one), const FrameworkSetting&>) row.framework = &one;
  };
  (add(when), ...);
  return row;
}

/// A key that fills a member. `further`: another name than the member's, the unit of a quantity or other words as its
/// value, in words what holds without the key where a new record has something else, and what goes with it.
template <auto pointer, const auto&... when>
constexpr Key member(std::string_view meaning, Key further = {}) {
  using T = decltype(detail::type_of(pointer));
  if (further.name.empty()) further.name = detail::name_of<pointer>();
  if (further.value.all[0].kind == Form::Kind::text) further.value = detail::value_for<T>();
  further.meaning = meaning;
  further.member = detail::member_of<pointer, T>(pointer);
  return with<when...>(further);
}
/// A quantity with this unit.
template <auto pointer, const auto&... when>
constexpr Key member(std::string_view unit, std::string_view usual, std::string_view meaning, Key further = {}) {
  further.value = quantity(unit);
  further.usual = usual;
  return member<pointer, when...>(meaning, further);
}
/// A key whose text, or each of a list's, a parser puts into a record: void parse(Owner&, std::string_view), which
/// throws UnitError.
template <auto parse, const auto&... when>
constexpr Key parsed_by(Key row) {
  using Owner = decltype(detail::filled_by(parse));
  row.member.record = &type_of_record<Owner>;
  row.member.set = [](void* record, std::string_view text, const Key& /*key*/, std::size_t /*item*/) {
    parse(*static_cast<Owner*>(record), text);
  };
  return with<when...>(row);
}
/// A key whose mapping fills a member: a record of its own.
template <auto pointer, const auto&... when>
constexpr Key part(const Mapping& keys, Key row) {
  using Owner = decltype(detail::owner_of(pointer));
  if (row.name.empty()) row.name = detail::name_of<pointer>();
  if (row.value.all[0].kind == Form::Kind::text) row.value = mapping(keys);
  row.member.record = &type_of_record<Owner>;
  row.member.part = [](void* record) { return detail::record_of(static_cast<Owner*>(record)->*pointer); };
  return with<when...>(row);
}
/// A key whose mapping fills more of the record that has it, beside what the row is for a single value.
template <typename Owner>
constexpr Key more_of(Key row) {
  row.member.record = &type_of_record<Owner>;
  row.member.part = [](void* record) { return Record{record, &type_of_record<Owner>}; };
  return row;
}
/// "bounded(4)" is "bounded" and 4, "none" is "none" and nothing. Throws UnitError.
struct WordWithNumber {
  std::string_view word;
  std::optional<int> number;
};
WordWithNumber parse_word_with_number(std::string_view text, int least);
/// A number of tokens. Throws UnitError.
double parse_length(std::string_view text);
/// "5 %" or 0.05. Throws UnitError.
double parse_share(std::string_view text);
/// The same below 100 % of the `whole`.
double parse_share_below(std::string_view text, std::string_view what, std::string_view whole);

/// A key whose value is such a share.
template <auto pointer, detail::Literal what, detail::Literal whole>
constexpr Key share(std::string_view usual, std::string_view meaning, Key row = {}) {
  using Owner = decltype(detail::owner_of(pointer));
  row.member.record = &type_of_record<Owner>;
  row.member.set = [](void* record, std::string_view text, const Key& /*key*/, std::size_t /*item*/) {
    static_cast<Owner*>(record)->*pointer = parse_share_below(text, what.text, whole.text);
  };
  if (row.name.empty()) row.name = detail::name_of<pointer>();
  row.value = quantity("%") | number;
  row.usual = usual;
  row.meaning = meaning;
  return row;
}

/// A key that must be there.
template <auto pointer>
constexpr Key needed(std::string_view meaning, Key further = {}) {
  further.usual = "needed";
  return member<pointer>(meaning, further);
}
template <auto pointer>
constexpr Key needed(std::string_view unit, std::string_view meaning, Key further = {}) {
  return member<pointer>(unit, "needed", meaning, further);
}

}  // namespace foretrain::keys
