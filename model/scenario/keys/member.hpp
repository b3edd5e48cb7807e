// Keys that fill members. A row such as
//   member<&Sync::servers>("How many parameter servers there are.", {.range = {1, 100'000}})
// says once what a key is: its name and the type of its value are the member's, what a new record has is what holds
// without the key, and MappingReader::fill reads it. Keys whose meaning hangs on other keys are rows without a member
// and lines of a reader.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "model/base/units.hpp"
#include "model/scenario/keys/key.hpp"

namespace foretrain::keys {

/// What the member does not say of its key.
struct Further {
  std::string_view name = {};       ///< where it is not the member's
  std::optional<Value> value = {};  ///< must be there for quantities; other words, a number that is whole
  std::string_view usual = {};      ///< in words, where it is not what a new record has
  std::string_view together = {};
  std::string_view title = {};
  IntegerRange range = {};
  std::optional<Zero> zero = {};
};

namespace detail {

template <typename T>
struct Plain {
  using Type = T;
};
template <typename T>
struct Plain<std::optional<T>> {
  using Type = T;
};

template <typename R, typename M>
struct MemberTypes {
  using Record = R;
  using Type = M;
  using Value = typename Plain<M>::Type;
};
template <typename R, typename M>
MemberTypes<R, M> types_of(M R::*);
template <auto pointer>
using TypesOf = decltype(types_of(pointer));

/// The last word of "… [with auto pointer = &foretrain::Sync::overlap; …]".
template <auto pointer>
constexpr std::string_view name_of() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find_first_of(";]", text.find("pointer = ")));
  return text.substr(text.rfind(':') + 1);
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
  if constexpr (std::is_same_v<T, bool>) {
    return words_of(key).empty() ? parse_flag(text) : parse_word(text, words_of(key)) == 1;
  } else if constexpr (std::is_enum_v<T>) {
    return *value_of<T>(words_of(key)[parse_word(text, words_of(key))]);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(parse_integer(text, key.range.minimum, key.range.maximum));
  } else {
    constexpr bool is_number = std::is_same_v<T, double>;
    T value;
    if constexpr (is_number) {
      if (key.value.all[0].kind == Form::Kind::whole) return static_cast<T>(parsed<std::int64_t>(text, key));
      value = parse_number(text);
    } else {
      value = parse_quantity<T>(text);
    }
    const Zero zero = key.zero.value_or(is_number ? Zero::allowed : Zero::refused);
    if (zero == Zero::refused && !(value > T(0.0))) {
      throw UnitError("zero is impossible here", is_number ? "a number above zero" : "a value above zero");
    }
    return value;
  }
}

template <auto pointer>
void set(void* record, std::string_view text, const Key& key) {
  using Types = TypesOf<pointer>;
  static_cast<typename Types::Record*>(record)->*pointer = parsed<typename Types::Value>(text, key);
}

template <typename T>
std::string written(const T& value, const Key& key) {
  if constexpr (std::is_same_v<T, bool>) {
    return std::string(words_of(key).empty() ? (value ? "true" : "false") : words_of(key)[value ? 1 : 0]);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(foretrain::name(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else {
    return value == T() ? "0" : "";
  }
}

template <auto pointer>
std::string usual(const Key& key) {
  using Types = TypesOf<pointer>;
  if constexpr (std::is_same_v<typename Types::Type, typename Types::Value>) {
    return written(typename Types::Record().*pointer, key);
  } else {
    return "";
  }
}

template <typename T>
constexpr Value value_for() {
  if constexpr (std::is_same_v<T, bool>) {
    return flag;
  } else if constexpr (std::is_enum_v<T>) {
    return word<T>;
  } else if constexpr (std::is_integral_v<T>) {
    return whole;
  } else {
    static_assert(std::is_same_v<T, double>, "a quantity's row names its unit");
    return number;
  }
}

}  // namespace detail

/// A key that fills a member.
template <auto pointer>
constexpr Key member(std::string_view meaning, const Further& further = {}) {
  using Types = detail::TypesOf<pointer>;
  using T = typename Types::Value;
  const std::string_view name = further.name.empty() ? detail::name_of<pointer>() : further.name;
  Key key{name,
          {},
          further.usual,
          meaning,
          further.together,
          further.title,
          further.range,
          further.zero,
          Member{&type_of_record<typename Types::Record>, &detail::set<pointer>, &detail::usual<pointer>}};
  if constexpr (std::is_class_v<T>) {
    key.value = *further.value;
  } else {
    key.value = further.value.value_or(detail::value_for<T>());
  }
  return key;
}

}  // namespace foretrain::keys
