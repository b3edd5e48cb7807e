// Calibration files of a machine ("foretrain calibration 1"): what is wrong with them is said where it stands.
#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

const std::string good = R"({
  "format": "foretrain calibration 1",
  "kind": "calibration",
  "name": "a machine",
  "base": "published",
  "gpu": {"name": "t4", "compute_capability": "7.5", "memory_latency": "310 ns"},
  "constants": {
    "matmul.fixed_us": {"value": "4.5 us", "kind": "fit", "standard_error": 0.1, "source": "here"},
    "matmul.tile_loss": {"value": 7.5, "kind": "fit", "standard_error": 0.5, "source": "here"}
  },
  "covariance": {"constants": ["matmul.fixed_us", "matmul.tile_loss"], "rows": [[0.01, -0.02], [-0.02, 0.25]]},
  "spread": {"matmul": 0.04}
})";

std::string complaint(const std::string& text) {
  return test::complaint_of([&] {
    const YamlNode document = parse_yaml(text, "c.json");
    (void)read_calibration(Field(document, ""));
  });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  return text.replace(place, from.size(), to);
}

}  // namespace

TEST_CASE("A machine's calibration lays its constants over the base") {
  const YamlNode document = parse_yaml(good, "c.json");
  const Calibration calibration = read_calibration(Field(document, ""));
  const Calibration base = load_default_calibration();
  CHECK(calibration.matmul.fixed_us == Approx(4.5));
  CHECK(calibration.matmul.tile_loss == Approx(7.5));
  CHECK(calibration.matmul.exposed_share == base.matmul.exposed_share);
  REQUIRE(calibration.calibrated);
  CHECK(calibration.calibrated->memory_latency.value() == Approx(310e-9));
  REQUIRE(calibration.fitted);
  CHECK(calibration.fitted->covariance[0][1] == Approx(-0.02));
  CHECK(calibration.constants.size() == base.constants.size());
  for (const Constant& constant : calibration.constants) {
    if (constant.name == "matmul.fixed_us") CHECK(constant.source == "here");
  }
}

TEST_CASE("What is wrong with a machine's calibration is said with its position") {
  struct Bad {
    std::string from, to, position, wrong;
  };
  const std::vector<Bad> rows = {
      {"calibration 1\"", "calibration 9\"", "c.json:2:", "unknown format \"foretrain calibration 9\""},
      {"\"kind\": \"calibration\"", "\"kind\": \"gpu\"", "c.json:3:", "no calibration"},
      {"\"base\": \"published\"", "\"base\": \"publishd\"", "c.json:5:", "published"},
      {"\"name\": \"t4\", ", "", "c.json:6:", "gpu.name"},
      {"310 ns", "310", "c.json:6:", "memory_latency"},
      {"7.5\"", "0\"", "c.json:6:", "compute_capability"},
      {"\"matmul.fixed_us\": {", "\"matmul.fixed\": {", "c.json:8:", "did you mean matmul.fixed_us?"},
      {"4.5 us", "4500 us", "c.json:8:", "outside of what is sensible"},
      {"4.5 us", "4.5", "c.json:8:", "no unit"},
      {"\"kind\": \"fit\"", "\"kind\": \"guess\"", "c.json:8:", "constants.matmul.fixed_us.kind"},
      {"[\"matmul.fixed_us\", ", "[\"matmul.tile_latencies\", ", "c.json:11:", "not among this file's constants"},
      {"[\"matmul.fixed_us\", ", "[\"matmul.fix\", ", "c.json:11:", "unknown constant"},
      {"[[0.01, -0.02], [-0.02, 0.25]]", "[[0.01, -0.02]]", "c.json:11:", "1 rows for 2 constants"},
      {"[-0.02, 0.25]", "[-0.02]", "c.json:11:", "1 numbers for 2 constants"},
      {"[-0.02, 0.25]", "[0.02, 0.25]", "c.json:11:", "not symmetric"},
      {"0.25]", "-0.25]", "c.json:11:", "negative variance"},
      {"0.25]", "much]", "c.json:11:", "no number"},
      {"0.25]", "nan]", "c.json:11:", "no number"},
      {"\"spread\"", "\"spred\"", "c.json:12:", "did you mean spread?"},
      {"0.04", "wide", "c.json:12:", "spread.matmul"},
  };
  CHECK(complaint(good) == "accepted");
  for (const Bad& bad : rows) {
    const std::string said = complaint(replaced(good, bad.from, bad.to));
    INFO(bad.from << " -> " << bad.to << ": " << said);
    CHECK(said.find(bad.position) != std::string::npos);
    CHECK(said.find(bad.wrong) != std::string::npos);
  }
}
