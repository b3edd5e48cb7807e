// What others call the things that scenarios say.
#pragma once

#include <optional>
#include <string_view>

namespace foretrain::keys {

/// What foretrain calls a key of Megatron-LM, DeepSpeed, NeMo, torchtitan or Hugging Face: a dotted key, or a sentence
/// about several. Letter case and - instead of _ make no difference.
std::optional<std::string_view> our_name(std::string_view foreign);

}  // namespace foretrain::keys
