// Words, lists of words, and text as it comes in and goes out: well-formed UTF-8 without control characters.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// Without leading and trailing blanks, tabs and line ends.
std::string_view trim(std::string_view text);

/// ASCII letters in lower case.
std::string to_lower(std::string_view text);

/// The whole number from 0 on behind a prefix: 12 for "gpu12" behind "gpu". Nothing when the name has another form.
std::optional<int> number_behind(std::string_view name, std::string_view prefix);

/// Pieces between separators; n separators make n + 1 pieces.
std::vector<std::string> split(std::string_view text, char separator);

/// Pieces between blanks, none empty.
std::vector<std::string> split_words(std::string_view text);

/// "a, b or c"; at most `limit` words, then "…".
std::string or_list(const std::vector<std::string>& words, std::size_t limit = 12);

/// As a shell reads it back: in quotes, or only where it needs them.
std::string shell_quoted(std::string_view text);
std::string shell_word(std::string_view text);

/// The candidate with the smallest edit distance, letter case ignored, if it is near enough to be a likely slip: at
/// most a third of the word's length, at least one. None is near a word of more than 200 bytes, which is no name.
std::optional<std::string> nearest_word(std::string_view word, const std::vector<std::string>& candidates);

/// The remedy for a word that nobody knows: "did you mean …?" where there is a likely one, else `otherwise`.
std::string did_you_mean(const std::optional<std::string>& likely, std::string otherwise);

/// Number of bytes of the character that starts at `at`; 0 when it is malformed (a surrogate, an overlong form, beyond
/// U+10FFFF, cut off: table 3-7 of the Unicode standard) or a control character other than tab and line ends, which
/// neither terminals nor XML take for text, or one that turns the direction of what follows.
std::size_t character_length(std::string_view text, std::size_t at);

/// The text for a terminal: each byte that is no part of a character, as above, becomes \x and two hexadecimal digits.
std::string printable(std::string_view text);

/// A text of more than `most` bytes without its middle, cut between characters: "aaaa … zz".
std::string shortened(std::string_view text, std::size_t most);

}  // namespace foretrain
