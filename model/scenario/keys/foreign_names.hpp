// What others call the things that scenarios say.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace foretrain::keys {

/// What foretrain calls a key of Megatron-LM, DeepSpeed, NeMo, torchtitan or Hugging Face: a dotted key, or a sentence
/// about several. Letter case and - instead of _ make no difference.
std::optional<std::string_view> our_name(std::string_view foreign);

/// A key that is read by another name as well.
struct AcceptedName {
  std::string_view theirs;         ///< a word
  std::string_view mapping, ours;  ///< the dotted key: the mapping that it stands in, and its own word
};
std::span<const AcceptedName> accepted_names();

}  // namespace foretrain::keys
