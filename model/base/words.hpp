// The words of enumerations: what users write and read for a value is its name in the code, and stands nowhere else.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace foretrain {

/// The name of a value as the compiler prints it; empty where the enumeration has no such value. Specialised for the
/// few whose word C++ keeps for itself.
template <auto value>
constexpr std::string_view enumerator_word() {
  // "… [with auto value = foretrain::Optimizer::sgd; …]"; without a name: "… value = (foretrain::Optimizer)7; …".
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("value = ") + 8);
  text = text.substr(0, text.find_first_of(";]"));
  return text.starts_with('(') ? std::string_view() : text.substr(text.rfind(':') + 1);
}

namespace detail {

template <typename E, std::size_t... number>
constexpr auto list_words(std::index_sequence<number...>) {
  constexpr std::size_t count = (std::size_t{0} + ... + (enumerator_word<static_cast<E>(number)>().empty() ? 0 : 1));
  constexpr std::array<std::string_view, sizeof...(number)> all = {enumerator_word<static_cast<E>(number)>()...};
  std::array<std::string_view, count> words;
  for (std::size_t i = 0; i < count; ++i) words[i] = all[i];
  return words;
}

}  // namespace detail

/// The words of an enumeration whose values are 0, 1, 2, … (24 at most), in that order.
template <typename E>
requires std::is_enum_v<E>
inline constexpr auto names_of = detail::list_words<E>(std::make_index_sequence<24>());

/// A value's word.
template <typename E>
requires std::is_enum_v<E>
constexpr std::string_view name(E value) { return names_of<E>[static_cast<std::size_t>(value)]; }

/// The value that a word names.
template <typename E>
constexpr std::optional<E> value_of(std::string_view word) {
  for (std::size_t i = 0; i < names_of<E>.size(); ++i) {
    if (names_of<E>[i] == word) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace foretrain
