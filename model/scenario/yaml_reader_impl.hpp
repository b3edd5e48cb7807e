// Templates of yaml_reader.hpp.
#pragma once

#include <utility>

#include "model/base/units.hpp"
#include "model/base/words.hpp"
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
  const Q value = parse(parse_quantity<Q>);
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

template <typename Q>
Q MappingReader::quantity_or(std::string_view key, Q fallback, Zero zero) const {
  const std::optional<Field> value = find(key);
  return value ? value->quantity<Q>(zero) : fallback;
}

template <typename E>
E MappingReader::choice_or(std::string_view key, E fallback, std::type_identity_t<std::span<const E>> allowed) const {
  const std::optional<Field> value = find(key);
  return value ? value->choice<E>(allowed) : fallback;
}

}  // namespace foretrain
