// Templates of yaml_reader.hpp.
#pragma once

#include <utility>

#include "model/base/units.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

template <typename Parse>
auto Field::parse(const Parse& parser) const {
  try {
    return parser(text());
  } catch (const UnitError& error) {
    fail(error.got(), error.expected());
  }
}

template <typename Q>
Q Field::quantity(Zero zero) const {
  const Q value = parse([](const std::string& text) { return parse_quantity<Q>(text); });
  if (zero == Zero::refused && !(value > Q(0.0))) fail("zero is impossible here", "a value above zero");
  return value;
}

template <typename E>
E Field::choice(std::span<const Named<E>> table) const {
  for (const Named<E>& row : table) {
    if (text() == row.word) return row.value;
  }
  std::vector<std::string> words;
  for (const Named<E>& row : table) words.emplace_back(row.word);
  fail_choice(words);
}

template <typename Q>
Q MappingReader::quantity_or(std::string_view key, Q fallback, Zero zero) const {
  const std::optional<Field> value = find(key);
  return value ? value->quantity<Q>(zero) : fallback;
}

template <typename E>
E MappingReader::choice_or(std::string_view key, E fallback, std::span<const Named<E>> table) const {
  const std::optional<Field> value = find(key);
  return value ? value->choice<E>(table) : fallback;
}

}  // namespace foretrain
