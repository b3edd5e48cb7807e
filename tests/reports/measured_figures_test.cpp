// Pictures of measurements: each curve's points are what was measured, in the units of its axes. Round numbers.
#include "reports/measured/measured_figures.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"

using namespace foretrain;

namespace {

using Keys = std::map<std::string, std::string>;

/// Records on a DGX H100.
class Measured {
 public:
  void add_operator(const std::string& suite, double seconds, const Keys& fields) {
    RawPoint point;
    point.record.suite = suite;
    point.record.name = suite + std::to_string(raw_.points.size());
    for (const auto& [key, value] : fields) point.record.scenario["workload.operator." + key] = value;
    point.record.unit = "s";
    point.record.values = {seconds, seconds, seconds};
    raw_.points.push_back(std::move(point));
  }
  [[nodiscard]] std::vector<PredictedPoint> points() const {
    PredictedPoints found =
        predicted_points(raw_, test::text_of(FORETRAIN_SOURCE_DIR "/scenarios/hardware/dgx-h100.yaml"));
    REQUIRE(found.not_understood.empty());
    return std::move(found.points);
  }

 private:
  RawMeasurements raw_;
};

const Panel& panel_of(const Figure& figure, const std::string& title) {
  const auto found = std::ranges::find(figure.panels, title, &Panel::title);
  REQUIRE(found != figure.panels.end());
  return *found;
}

/// A curve of one point.
void check_point(const Panel& panel, const std::string& name, double x, double y) {
  CAPTURE(panel.title, name);
  const auto found = std::ranges::find(panel.series, name, &Series::name);
  REQUIRE(found != panel.series.end());
  REQUIRE(found->points.size() == 1);
  CHECK(found->points.front().x == Approx(x));
  CHECK(found->points.front().y == Approx(y));
}

}  // namespace

TEST_CASE("Matrix products are drawn by format and shortest side, in operations a second") {
  Measured m;
  const auto product = [&](const char* side, const char* precision, double seconds) {
    m.add_operator("gemm", seconds,
                   {{"kind", "matmul"}, {"m", "4000"}, {"n", "5000"}, {"k", side}, {"precision", precision}});
  };
  product("1000", "bf16", 1e-4);  // 2 · 4000 · 5000 · 1000 = 40 GFLOP: 400 TFLOP/s
  product("50", "bf16", 1e-5);
  product("2048", "fp32", 1e-2);
  const Figure figure = gemm_figure(m.points());
  REQUIRE(figure.panels.size() == 2);
  const Panel& bf16 = panel_of(figure, "Matrix products, bf16");
  check_point(bf16, "512 to 2047", 40.0, 400.0);
  check_point(bf16, "shortest side below 64", 2.0, 200.0);
  CHECK(bf16.levels.front().at == Approx(989.4).epsilon(1e-3));
  check_point(panel_of(figure, "Matrix products, fp32"), "2048 and more", 81.92, 8.192);
  CHECK_THROWS_AS(gemm_figure({}), UsageError);
}
