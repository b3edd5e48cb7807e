// A file of another tool is refused, or becomes text, for every reader.
#include "reports/import/importer.hpp"
#include "model/base/text.hpp"
#include "tests/fuzz/harness.hpp"

using namespace foretrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 0);
  for (const Importer& importer : importers()) {
    fuzz::accepted([&] {
      const std::string text = importer.read({.file = "fuzz", .text = std::string(fuzz::text_of(data, size))});
      fuzz::require(printable(text) == text);  // nothing in it commands a terminal
    });
  }
  return 0;
}
