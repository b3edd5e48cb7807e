#include "validate/cuda/collective/greeting.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace foretrain::gpu {

namespace {

constexpr std::string_view magic("foretrain-gpu 3", 16);  // with its zero
constexpr std::string_view rank_0 = "rank 0", another = "another process";

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

std::string joined(std::string_view challenge, std::string_view greeting) {
  return std::string(challenge).append(greeting);
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

std::string Token::proof(std::string_view who, std::string_view said) const {
  return hmac_sha256({bytes_.data(), bytes_.size()}, std::string(who).append(1, '\0').append(said));
}

std::string challenge_text() { return std::string(magic) + random_bytes(nonce_bytes); }

bool is_challenge(std::string_view bytes) { return bytes.size() == challenge_bytes && bytes.starts_with(magic); }

std::string greeting_text(const Greeting& greeting, const Token& token, std::string_view challenge) {
  std::string text(magic);
  append(text, greeting.rank);
  append(text, greeting.size);
  text += random_bytes(nonce_bytes);
  return text + token.proof(another, joined(challenge, text));
}

std::optional<Greeting> read_greeting(std::string_view bytes, const Token& token, std::string_view challenge) {
  if (bytes.size() != greeting_bytes || !bytes.starts_with(magic)) return std::nullopt;
  const std::string_view said = bytes.substr(0, greeting_bytes - hmac_bytes);
  if (!same_bytes(bytes.substr(said.size()), token.proof(another, joined(challenge, said)))) return std::nullopt;
  return Greeting{.rank = number_at(bytes, magic.size()), .size = number_at(bytes, magic.size() + 4)};
}

std::string answer_text(const Token& token, std::string_view challenge, std::string_view greeting) {
  return token.proof(rank_0, joined(challenge, greeting));
}

bool is_answer(std::string_view bytes, const Token& token, std::string_view challenge, std::string_view greeting) {
  return same_bytes(bytes, answer_text(token, challenge, greeting));
}

}  // namespace foretrain::gpu
