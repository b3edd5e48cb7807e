#include "model/base/utf8.hpp"

namespace foretrain {

namespace {

constexpr std::string_view hexadecimal = "0123456789abcdef";

bool continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

/// Whether a character of several bytes is one that text may not hold: U+0080 to U+009F are control characters, U+FFFE
/// and U+FFFF no characters at all; U+202A to U+202E and U+2066 to U+2069 make what follows look like something else.
bool is_forbidden(std::string_view character) {
  const auto last = static_cast<unsigned char>(character.back());
  if (character.starts_with("\xE2\x80")) return last >= 0xAA && last <= 0xAE;
  if (character.starts_with("\xE2\x81")) return last >= 0xA6 && last <= 0xA9;
  return (character[0] == '\xC2' && last < 0xA0) || character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
}

}  // namespace

std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return (lead >= 0x20 && lead != 0x7F) || lead == '\t' || lead == '\n' || lead == '\r' ? 1 : 0;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return 0;
  // The second byte decides what the lead alone leaves open: overlong forms, surrogates, and beyond U+10FFFF.
  const unsigned char least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(at + 1) < least || byte(at + 1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (!continues(byte(at + i))) return 0;
  }
  return is_forbidden(text.substr(at, length)) ? 0 : length;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = text[at] == '\r' ? 0 : character_length(text, at);
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(text[at++]);
      shown += {'\\', 'x', hexadecimal[byte >> 4], hexadecimal[byte & 0xF]};
    } else {
      shown += text.substr(at, length);
      at += length;
    }
  }
  return shown;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t head = most * 3 / 4;
  std::size_t tail = text.size() - (most - head);
  while (head > 0 && continues(static_cast<unsigned char>(text[head]))) --head;
  while (tail < text.size() && continues(static_cast<unsigned char>(text[tail]))) ++tail;
  return std::string(text.substr(0, head)).append(" … ").append(text.substr(tail));
}

}  // namespace foretrain
