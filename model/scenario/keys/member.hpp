// Keys that fill members. A row such as
//   member<&Sync::servers>("How many parameter servers there are.", {.range = {1, 100'000}})
//   needed<&Gpu::memory>("GB", "Size of its memory.")
// says once what a key is: its name and the type of its value are the member's, what a new record has is what holds
// without the key, and MappingReader::fill reads it. Keys whose meaning hangs on other keys are rows without a member
// and lines of a reader.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

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
  if constexpr (std::is_integral_v<T>) return whole;
  if constexpr (std::is_class_v<T>) throw std::logic_error("the row of a quantity names its unit");
  return number;
}

constexpr std::span<const std::string_view> words_of(const Key& key) {
  for (const Form& form : key.value.forms()) {
    if (form.kind == Form::Kind::word) return form.words;
  }
  return {};
}

/// The value that a text stands for. Throws UnitError.
template <typename T>
T parsed(std::string_view text, const Key& key) {
  constexpr bool is_number = std::is_same_v<T, double>;
  if constexpr (std::is_same_v<T, bool>) {
    return words_of(key).empty() ? parse_flag(text) : parse_word(text, words_of(key)) == 1;
  } else if constexpr (std::is_enum_v<T>) {
    return *value_of<T>(words_of(key)[parse_word(text, words_of(key))]);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(parse_integer(text, key.range.minimum, key.range.maximum));
  } else {
    T value;
    if constexpr (is_number) {
      if (key.value.all[0].kind == Form::Kind::whole) return static_cast<T>(parsed<std::int64_t>(text, key));
      value = parse_number(text);
    } else {
      value = parse_quantity<T>(text);
    }
    const bool refused = key.zero.value_or(is_number ? Zero::allowed : Zero::refused) == Zero::refused;
    if (!refused || value > T(0.0)) return value;
    throw UnitError("zero is impossible here", is_number ? "a number above zero" : "a value above zero");
  }
}

/// A value as a file says it; empty for optional ones, and for quantities but zero, of which the row has the text.
template <typename T>
std::string written(const T& value, const Key& key) {
  if constexpr (std::is_same_v<T, bool>) {
    return std::string(words_of(key).empty() ? (value ? "true" : "false") : words_of(key)[value ? 1 : 0]);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(foretrain::name(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else {
    return value == T(0.0) ? "0" : "";
  }
}
template <typename T>
std::string written(const std::optional<T>& /*value*/, const Key& /*key*/) {
  return "";
}

template <auto pointer, typename T, typename Record, typename M>
constexpr Member member_of(M Record::*) {
  return {&type_of_record<Record>,
          [](void* record, std::string_view text, const Key& key) {
            static_cast<Record*>(record)->*pointer = parsed<T>(text, key);
          },
          [](const Key& key) { return written(Record().*pointer, key); }};
}

template <typename M, typename Record>
M type_of(M Record::*);
template <typename M, typename Record>
M type_of(std::optional<M> Record::*);

}  // namespace detail

/// Throws UnitError for a text that is no word, flag or whole number where the key's first form is one.
inline void require_form(std::string_view text, const Key& key) {
  const Form& form = key.value.all[0];
  if (form.kind == Form::Kind::word) static_cast<void>(parse_word(text, form.words));
  if (form.kind == Form::Kind::flag) static_cast<void>(parse_flag(text));
  if (form.kind == Form::Kind::whole) {
    static_cast<void>(parse_integer(text, key.range.minimum, key.range.maximum));
  }
}

/// A key that fills a member. `further`: another name than the member's, the unit of a quantity or other words as its
/// value, in words what holds without the key where a new record has something else, and what goes with it.
template <auto pointer>
constexpr Key member(std::string_view meaning, Key further = {}) {
  using T = decltype(detail::type_of(pointer));
  if (further.name.empty()) further.name = detail::name_of<pointer>();
  if (further.value.all[0].kind == Form::Kind::text) further.value = detail::value_for<T>();
  further.meaning = meaning;
  further.member = detail::member_of<pointer, T>(pointer);
  return further;
}
/// A quantity with this unit.
template <auto pointer>
constexpr Key member(std::string_view unit, std::string_view usual, std::string_view meaning, Key further = {}) {
  further.value = quantity(unit);
  further.usual = usual;
  return member<pointer>(meaning, further);
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
