// What anyone may say to rank 0: without the run's token it is no greeting.
#include "tests/fuzz/harness.hpp"
#include "validate/cuda/collective/greeting.hpp"

using namespace foretrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gpu::Token token("the token of this run");
  const std::string challenge = gpu::challenge_text().substr(0, 16) + std::string(gpu::nonce_bytes, 'x');
  const std::string_view bytes = fuzz::text_of(data, size);
  // A proof cannot be guessed: whatever is said, nobody is let in.
  fuzz::require(!gpu::read_greeting(bytes, token, challenge));
  fuzz::require(!gpu::is_answer(bytes, token, challenge, challenge));
  (void)gpu::is_challenge(bytes);
  return 0;
}
