// `measured_matmuls` of a calibration: a user's own products beside the published constants.
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

const std::string good_row =
    "gpu: t4, precision: fp16, m: 1000, n: 2000, k: 3000, time: 500 us, source: \"my machine\"";

Calibration read(const std::string& rows) {
  const YamlNode published = cached_yaml_file((data_directory() / "calibrations/published.yaml").string());
  YamlNode document = published;
  const YamlNode extra = parse_yaml("measured_matmuls:\n" + rows, "rows.yaml");
  document.entries.push_back(extra.entries.front());
  return read_calibration(Field(document, ""));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

Gpu catalogue_gpu(const std::string& name) {
  return read_gpu(Field(cached_yaml_file((data_directory() / "hardware/gpus" / (name + ".yaml")).string()), ""));
}

}  // namespace

TEST_CASE("Measured products arrive with their shapes and times") {
  const Calibration calibration = read("  - { " + good_row + " }\n");
  REQUIRE(calibration.measured_matmuls.size() == 1);
  const MeasuredMatmul& row = calibration.measured_matmuls.front();
  CHECK(row.gpu == "t4");
  CHECK(row.k == 3000);
  CHECK(row.time.value() == Approx(500e-6));
  CHECK(load_default_calibration().measured_matmuls.empty());  // the model stands alone
}

TEST_CASE(
    "A measured product may beat the datasheet's rate by a seventh, not more, on the GPU that it was measured on") {
  // T4: 65 TFLOP/s in fp16. 2 · 1000 · 2000 · 3000 = 12 GFLOP take 184.6 us at that rate, 160.5 us at 1.15 of it.
  const Gpu t4 = catalogue_gpu("t4"), v100 = catalogue_gpu("v100-pcie-16gb");
  const auto with_time = [](const std::string& time) {
    return read("  - { " + good_row + " }\n  - { " + replaced(good_row, "500 us", time) + " }\n");
  };
  CHECK_NOTHROW(check_measured_matmuls(with_time("161 us"), t4));
  CHECK_NOTHROW(check_measured_matmuls(with_time("160 us"), v100));
  std::string text;
  try {
    check_measured_matmuls(with_time("160 us"), t4);
  } catch (const ScenarioError& error) {
    text = error.what();
  }
  INFO(text);
  CHECK(text.find("rows.yaml:3:") == 0);
  CHECK(text.find("measured_matmuls[1].time: 160 us would be 75 TFLOP/s of t4's 65 in fp16; at least 161 us") !=
        std::string::npos);
  // The same time in a batch of two is twice as fast.
  const Calibration batched = read("  - { " + good_row + ", batch: 4 }\n");
  CHECK_THROWS_AS(check_measured_matmuls(batched, t4), ScenarioError);
}
