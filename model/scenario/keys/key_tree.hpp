// The tables as a tree: where each key stands, what it is called in full and by others, what its value may be.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/keys/keys.hpp"

namespace foretrain::keys {

/// All keys of a value of this form: its mapping's, those of the variants that the word chooses (all of them where it
/// chooses none), and keys_beside().
std::vector<const Key*> keys_of(const Form& form, std::string_view word);

/// A key at a place of a file.
struct Place {
  std::string path;  ///< dotted: "plan.sync.bucket"; NAME for names that files choose, [] behind lists
  const Key* key = nullptr;
  std::string when = {};  ///< the variant that has it: "kind: matmul"; empty: always there
};

/// Whether a mapping is reported wherever it may stand, or only where it is met first.
enum class Repeats { listed, left_out };

/// Every key of a kind of file (a word of files()), mappings behind their keys. Mappings in themselves end there.
std::vector<Place> places(const FileKind& file, Repeats repeats);

/// Every dotted key that a scenario may have without lists in it, as --set takes it.
std::vector<std::string> dotted_keys();
/// The words that a dotted key of a scenario may have as its value; none where it takes numbers or texts.
std::vector<std::string> words_of(std::string_view dotted_key);

/// Axis title of a dotted key: its title, or its last word.
std::string title_of(std::string_view dotted_key);

/// The key's default: in words, or the value of its member in a new record; empty without one.
std::string usual_of(const Key& key);

/// The same as a value of the key; empty where the words are none.
std::string usual_value(const Key& key);

/// A key of the same mapping with which a key goes together, as its row says: "With pinned.", "kind: disk or network",
/// "Family llama or t5."
struct Companion {
  const Key* key = nullptr;
  std::vector<std::string> words = {};  ///< that it may have; none: whatever is not nothing

  [[nodiscard]] bool suits(std::string_view value) const;
};
std::optional<Companion> companion_of(const Key& key, std::span<const Key* const> known);

/// Describes allowed values: "a whole number", "a bandwidth (Gbit/s)", "ring, tree or auto", ….
std::string describe(const Value& value);

/// foretrain's name of a key of Megatron-LM, DeepSpeed, NeMo, torchtitan or Hugging Face: a dotted key, or a sentence
/// about several. Letter case and - instead of _ make no difference.
std::optional<std::string_view> our_name(std::string_view foreign);

/// A key that is read by another name as well.
struct AcceptedName {
  std::string_view theirs;         ///< a word
  std::string_view mapping, ours;  ///< the dotted key: the mapping that it stands in, and its own word
};
std::span<const AcceptedName> accepted_names();

/// A value of a key that is read as another.
struct AcceptedValue {
  std::string_view key;  ///< dotted, by our name
  std::string_view theirs, ours;
};
std::span<const AcceptedValue> accepted_values();

/// The dotted key by our name, where it is an accepted one.
std::string current_name(std::string_view dotted_key);

}  // namespace foretrain::keys
