// All tables of keys, by way of the rows that lead to them.
#pragma once

#include <set>

#include "model/scenario/keys/keys.hpp"

namespace foretrain::test {

inline void add_mappings(const keys::Mapping& mapping, std::set<const keys::Mapping*>& all) {
  if (!all.insert(&mapping).second) return;
  for (const keys::Key& key : mapping.keys) {
    for (const keys::Form& form : key.value.forms()) {
      if (form.mapping != nullptr) add_mappings(*form.mapping, all);
    }
  }
  for (const keys::Variant& variant : mapping.variants) add_mappings(*variant.keys, all);
}

/// Those of all kinds of files.
inline std::set<const keys::Mapping*> all_mappings() {
  std::set<const keys::Mapping*> all;
  for (const keys::FileKind& file : keys::files()) {
    for (const keys::Mapping* table : file.tables) add_mappings(*table, all);
  }
  return all;
}

}  // namespace foretrain::test
