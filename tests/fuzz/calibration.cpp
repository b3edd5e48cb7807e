// A calibration is refused with its place, or has every constant within its bounds.
#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/fuzz/harness.hpp"

using namespace foretrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 0);
  fuzz::accepted([&] {
    const YamlNode document = parse_yaml(fuzz::text_of(data, size), "fuzz.yaml");
    Calibration calibration = read_calibration(Field(document, ""));
    for (const ConstantRow& row : calibration_rows()) {
      const double value = row.field(calibration);
      fuzz::require(row.optional || (value >= row.minimum && value <= row.maximum));
    }
  });
  return 0;
}
