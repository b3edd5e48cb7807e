#include "validate/cuda/collective/greeting.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace foretrain::gpu {

namespace {

constexpr std::string_view magic("foretrain-gpu 2", 16);  // with its zero

std::int32_t number_at(std::string_view bytes, std::size_t at) {
  std::int32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

void append(std::string& text, std::int32_t value) {
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  text.append(bytes, sizeof(bytes));
}

}  // namespace

Token::Token(std::string_view text) {
  if (text.size() < least || text.size() > most) {
    throw std::invalid_argument("FORETRAIN_TOKEN has " + std::to_string(text.size()) + " characters: give it " +
                                std::to_string(least) + " to " + std::to_string(most) +
                                " that nobody guesses, as $(openssl rand -hex 16) does, the same for all processes");
  }
  std::copy(text.begin(), text.end(), bytes_.begin());
}

bool Token::is(std::string_view bytes) const {
  unsigned char difference = bytes.size() == bytes_.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(bytes.size(), bytes_.size()); ++i) {
    difference = static_cast<unsigned char>(difference | (bytes[i] ^ bytes_[i]));
  }
  return difference == 0;
}

std::string greeting_text(const Greeting& greeting, const Token& token) {
  std::string text(magic);
  append(text, greeting.rank);
  append(text, greeting.size);
  return text.append(token.bytes());
}

std::optional<Greeting> read_greeting(std::string_view bytes, const Token& token) {
  if (bytes.size() != greeting_bytes || !bytes.starts_with(magic)) return std::nullopt;
  if (!token.is(bytes.substr(magic.size() + 8))) return std::nullopt;
  return Greeting{.rank = number_at(bytes, magic.size()), .size = number_at(bytes, magic.size() + 4)};
}

}  // namespace foretrain::gpu
