// Values that were read of a part of a document: the points of a sweep have most of their parts in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/base/hash.hpp"
#include "model/base/seen_files.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// A part, with the places of its values, for complaints.
template <typename T>
struct PartKey {
  using Value = const MadeOfFiles<T>;
  YamlNode part;
  std::string path, catalogue;

  bool operator==(const PartKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(part.hash(), path); }
  [[nodiscard]] std::size_t bytes(const MadeOfFiles<T>&) const { return 50'000; }
};

/// The result of `read` on the field, which depends on the field's text alone; read again only if it or a file that
/// it names has changed.
template <typename Read>
auto read_once(const Field& field, const Read& read) {
  using Key = PartKey<decltype(read(field))>;
  const std::string catalogue = data_directory().string();
  const auto known = session().find<Key>(hash_of(field.node().hash(), field.path()), [&](const Key& key) {
    return key.part == field.node() && key.path == field.path() && key.catalogue == catalogue;
  });
  if (known && are_unchanged(known->files)) return known->value;
  return made_of_files(Key{field.node(), field.path(), catalogue}, [&] { return read(field); })->value;
}

}  // namespace foretrain
