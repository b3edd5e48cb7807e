#include "model/scenario/keys/foreign_names.hpp"

#include <algorithm>
#include <cstddef>
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

std::span<const AcceptedName> accepted_names() {
  constexpr auto accepted = [](std::string_view theirs, std::string_view ours) {
    const std::size_t dot = ours.rfind('.');
    return AcceptedName{theirs, ours.substr(0, dot), ours.substr(dot + 1)};
  };
  static constexpr AcceptedName all[] = {
#define FOREIGN(theirs, ours)
#define ACCEPTED(theirs, ours) accepted(theirs, ours),
#include "model/scenario/keys/foreign_names.def"
  };
  return all;
}

}  // namespace foretrain::keys
