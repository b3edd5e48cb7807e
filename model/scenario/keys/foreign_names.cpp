#include "model/scenario/keys/foreign_names.hpp"

#include <algorithm>
#include <string>

#include "model/base/text.hpp"

namespace foretrain::keys {

std::optional<std::string_view> our_name(std::string_view foreign) {
  struct ForeignName {
    std::string_view theirs, ours;
  };
  static constexpr ForeignName all[] = {
#define FOREIGN(theirs, ours) {theirs, ours},
#include "model/scenario/keys/foreign_names.def"
  };
  std::string word = to_lower(foreign);
  std::ranges::replace(word, '-', '_');
  const auto* const found = std::ranges::find(all, word, &ForeignName::theirs);
  return found == std::end(all) ? std::nullopt : std::optional(found->ours);
}

}  // namespace foretrain::keys
