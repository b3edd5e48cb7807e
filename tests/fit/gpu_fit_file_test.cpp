// What the file of a fitted calibration says.
#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/fit/fitted.hpp"

using namespace foretrain;
using namespace foretrain::test;

TEST_CASE("What is said of a table of products is the error of those held out") {
  REQUIRE_FALSE(fitted().measured_matmuls.empty());
  CHECK_THAT(fitted().matmul_note,
             Catch::Contains(fmt::format(", {:.1f} % beside {} measured ones", 100.0 * fitted().bars.front().mape,
                                         fitted().measured_matmuls.size())));
}

TEST_CASE("A calibration's file says which constants lie at a bound, and which products were transposed") {
  GpuCalibration fit = fitted();
  REQUIRE(fit.fitted.size() > 1);
  for (auto& [constant, source] : fit.fitted) constant.at_bound = false;
  for (MeasuredMatmul& row : fit.measured_matmuls) row.transpose_a = row.transpose_b = false;
  CHECK_THAT(to_json(fit), !Catch::Contains("at_bound") && !Catch::Contains("transpose"));
  fit.fitted.front().constant.at_bound = true;
  fit.measured_matmuls.front().transpose_a = true;
  fit.measured_matmuls.back().transpose_b = true;
  for (const char* key : {"at_bound", "transpose_a", "transpose_b"}) {
    const std::string text = to_json(fit);
    const std::size_t at = text.find(key);
    REQUIRE(at != std::string::npos);
    CHECK(text.substr(text.find(':', at) + 1, 5).find("true") != std::string::npos);
  }
}

TEST_CASE("Numbers of a calibration's file have seven digits") {
  GpuCalibration fit = fitted();
  REQUIRE(find(fit, "streaming.bandwidth_efficiency") != nullptr);
  for (auto& [constant, source] : fit.fitted) {
    if (constant.name == "streaming.bandwidth_efficiency") constant.after = 0.123456789;
  }
  CHECK_THAT(to_json(fit), Catch::Contains("0.1234568,"));
}
