// Text as it comes in and goes out: well-formed UTF-8 without control characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace foretrain {

/// Number of bytes of the character that starts at `at`; 0 when it is malformed (a surrogate, an overlong form, beyond
/// U+10FFFF, cut off: table 3-7 of the Unicode standard) or a control character other than tab and line ends, which
/// neither terminals nor XML take for text, or one that turns the direction of what follows.
std::size_t character_length(std::string_view text, std::size_t at);

/// The text for a terminal: each byte that is no part of a character, as above, becomes \x and two hexadecimal digits.
std::string printable(std::string_view text);

/// A text of more than `most` bytes without its middle, cut between characters: "aaaa … zz".
std::string shortened(std::string_view text, std::size_t most);

}  // namespace foretrain
