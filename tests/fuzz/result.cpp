// A result reads back as it was written, or is refused as none.
#include <nlohmann/json.hpp>

#include "reports/result/json.hpp"
#include "tests/fuzz/harness.hpp"

using namespace foretrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string once = to_json(result_from_json(fuzz::text_of(data, size)));
    fuzz::require(to_json(result_from_json(once)) == once);
  } catch (const ScenarioError&) {
    // Fields that to_json does not write.
  }
  return 0;
}
