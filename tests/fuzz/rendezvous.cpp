// What anyone may say to rank 0: a greeting is that of the run's token, or none.
#include "tests/fuzz/harness.hpp"
#include "validate/cuda/collective/greeting.hpp"

using namespace foretrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gpu::Token token("the token of this run");
  const std::string_view bytes = fuzz::text_of(data, size);
  if (const auto greeting = gpu::read_greeting(bytes, token)) {
    fuzz::require(gpu::greeting_text(*greeting, token) == bytes);
  }
  return 0;
}
