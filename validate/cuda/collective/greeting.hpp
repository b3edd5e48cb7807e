// What a process says first when it comes to rank 0, and how long what follows may be. Rank 0 reads it from anyone who
// finds the port: nothing in it is believed before the token is right.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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
  /// Takes as long whatever is wrong with it.
  [[nodiscard]] bool is(std::string_view bytes) const;
  [[nodiscard]] std::string_view bytes() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::array<char, most> bytes_{};  ///< zeros behind the text
};

/// "foretrain-gpu 2" and a zero, rank and size as 32 bits each, the token.
constexpr std::size_t greeting_bytes = 16 + 4 + 4 + Token::most;

std::string greeting_text(const Greeting& greeting, const Token& token);

/// Nothing for bytes that are no greeting of this program with this token.
std::optional<Greeting> read_greeting(std::string_view bytes, const Token& token);

/// The longest text that one process tells the others: a list of what a suite does takes some kilobytes.
constexpr std::uint64_t longest_text = 16 << 20;

}  // namespace foretrain::gpu
