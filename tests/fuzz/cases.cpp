// A table of cases is refused with its place, or every row of it is a scenario or refused.
#include "model/scenario/load/cases.hpp"

#include "tests/fuzz/harness.hpp"

using namespace foretrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 0);
  std::vector<Case> rows;
  fuzz::accepted([&] { rows = read_cases_text(fuzz::text_of(data, size), "fuzz.csv"); });
  if (rows.size() > 4) rows.resize(4);
  for (const Case& row : rows) {
    fuzz::accepted([&] { (void)scenario_of(row); });
  }
  return 0;
}
