// What rank 0 and a process that comes to it say first, and how long what follows may be. Either end may be a stranger,
// who finds the port or holds it: each proves that it knows the run's token, which itself is never sent.
//
//   rank 0:   challenge   "foretrain-gpu 3", 32 random bytes
//   process:  greeting    "foretrain-gpu 3", rank, size, 32 random bytes, HMAC of all that both have said
//   rank 0:   answer      HMAC of the same, in its role
//
// Nothing is believed before its proof is right, and a proof holds for one connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "validate/cuda/collective/hmac.hpp"

namespace foretrain::gpu {

struct Greeting {
  int rank = 0, size = 0;
};

/// The secret that the launcher gives to every process of one run, in the environment variable FORETRAIN_TOKEN.
class Token {
 public:
  static constexpr std::size_t least = 16, most = 64;

  /// Throws std::invalid_argument for a text of other than `least` to `most` characters.
  explicit Token(std::string_view text);
  /// That `who` knows it and has heard what was said.
  [[nodiscard]] std::string proof(std::string_view who, std::string_view said) const;

 private:
  std::array<char, most> bytes_{};  ///< zeros behind the text
};

constexpr std::size_t nonce_bytes = 32;
constexpr std::size_t challenge_bytes = 16 + nonce_bytes;
constexpr std::size_t greeting_bytes = 16 + 4 + 4 + nonce_bytes + hmac_bytes;
constexpr std::size_t answer_bytes = hmac_bytes;

std::string challenge_text();
/// Whether this program could have said it.
bool is_challenge(std::string_view bytes);

std::string greeting_text(const Greeting& greeting, const Token& token, std::string_view challenge);
/// Nothing for bytes that are no greeting of this program with this token, in reply to the challenge.
std::optional<Greeting> read_greeting(std::string_view bytes, const Token& token, std::string_view challenge);

std::string answer_text(const Token& token, std::string_view challenge, std::string_view greeting);
bool is_answer(std::string_view bytes, const Token& token, std::string_view challenge, std::string_view greeting);

/// The longest text that one process tells the others: a list of what a suite does takes some kilobytes.
constexpr std::uint64_t longest_text = 16 << 20;

}  // namespace foretrain::gpu
