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
  void add(const std::string& suite, Keys parameters, double seconds, Keys scenario = {}) {
    RawPoint point;
    point.record.suite = suite;
    point.record.name = suite + std::to_string(raw_.points.size());
    point.record.scenario = std::move(scenario);
    point.record.parameters = std::move(parameters);
    point.record.unit = "s";
    point.record.values = {seconds, seconds, seconds};
    raw_.points.push_back(std::move(point));
  }
  void add_operator(const std::string& suite, double seconds, const Keys& fields) {
    Keys scenario;
    for (const auto& [key, value] : fields) scenario["workload.operator." + key] = value;
    add(suite, {}, seconds, std::move(scenario));
  }
  [[nodiscard]] const RawMeasurements& raw() const { return raw_; }
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

TEST_CASE("Bandwidths of memory, caches and links are bytes over time, of both directions together") {
  Measured m;
  // An element of 4 bytes is read and one written: 8 MB in 4 us. 1,000,000 reads of 4 bytes in 2 us, or 150 ns each.
  m.add_operator("memory", 4e-6, {{"kind", "elementwise"}, {"elements", "1000000"}, {"precision", "fp32"}});
  const Keys access = {{"kind", "memory_access"}, {"working_set", "1 MB"}, {"reads", "1000000"}};
  const auto with = [&](const char* pattern) {
    Keys keys = access;
    keys["pattern"] = pattern;
    return keys;
  };
  m.add_operator("memory", 2e-6, with("sequential"));
  m.add_operator("memory", 5e-6, with("random"));
  m.add_operator("memory", 0.15, with("dependent"));
  const auto copy = [&](const char* direction, const char* timing, double seconds) {
    m.add("copy",
          {{"what", "host_copy"},
           {"memory", "pinned"},
           {"timing", timing},
           {"direction", direction},
           {"bytes", "1000000"}},
          seconds);
  };
  copy("to_device", "stream", 20e-6);
  copy("both", "stream", 40e-6);
  copy("to_host", "host", 55e-6);
  const auto peer = [&](const char* direction, const char* access_between, double seconds) {
    m.add("peer",
          {{"timing", "stream"},
           {"direction", direction},
           {"peer_access", access_between},
           {"source", "0"},
           {"destination", "3"},
           {"bytes", "1000000"}},
          seconds);
  };
  peer("one", "on", 4e-6);
  peer("both", "on", 5e-6);
  peer("one", "off", 80e-6);

  const Figure figure = bandwidth_figure(m.raw(), m.points());
  const Panel& memory = panel_of(figure, "Device memory, cold operands");
  check_point(memory, "copy", 8e6, 2000.0);
  REQUIRE(memory.levels.size() == 1);
  CHECK(memory.levels.front().at == Approx(3352.0));
  const Panel& walks = panel_of(figure, "Reads by working set");
  check_point(walks, "sequential reads of 4 B", 1e6, 2000.0);
  check_point(walks, "random reads of 4 B", 1e6, 800.0);
  check_point(panel_of(figure, "Pointer chase"), "measured", 1e6, 150.0);
  const Panel& copies = panel_of(figure, "Host and device: many copies in a row");
  check_point(copies, "pinned to_device", 1e6, 50.0);
  check_point(copies, "pinned both", 1e6, 50.0);
  check_point(panel_of(figure, "Host and device: one copy and its wait"), "pinned to_host", 1e6, 55.0);
  const Panel& peers = panel_of(figure, "Between GPUs");
  check_point(peers, "0->3", 1e6, 250.0);
  check_point(peers, "0<->3", 1e6, 400.0);
  check_point(peers, "0->3 through the host", 1e6, 12.5);
}

TEST_CASE("Matrix products are drawn by format and shortest side, in operations a second") {
  Measured m;
  const auto product = [&](const char* side, const char* precision, double seconds) {
    m.add_operator("gemm", seconds,
                   {{"kind", "matmul"}, {"m", "4000"}, {"n", "5000"}, {"k", side}, {"precision", precision}});
  };
  product("1000", "bf16", 1e-4);  // 2 · 4000 · 5000 · 1000 = 40 GFLOP: 400 TFLOP/s
  product("50", "bf16", 1e-5);
  product("2048", "fp32", 1e-2);
  const Figure figure = gemm_figure(m.raw(), m.points());
  REQUIRE(figure.panels.size() == 2);
  const Panel& bf16 = panel_of(figure, "Matrix products, bf16");
  check_point(bf16, "512 to 2047", 40.0, 400.0);
  check_point(bf16, "shortest side below 64", 2.0, 200.0);
  CHECK(bf16.levels.front().at == Approx(989.4).epsilon(1e-3));
  check_point(panel_of(figure, "Matrix products, fp32"), "2048 and more", 81.92, 8.192);
  CHECK_THROWS_AS(bus_bandwidth_figure(m.raw(), m.points()), UsageError);
}

TEST_CASE("Collectives are drawn by what the bus carries, by number of GPUs") {
  Measured m;
  const auto collective = [&](const char* operation, const char* ranks, double seconds) {
    m.add("collective", {}, seconds,
          {{"workload.collective.operation", operation},
           {"workload.collective.size", "1 GB"},
           {"workload.collective.ranks", ranks}});
  };
  collective("all_reduce", "8", 10e-3);  // 100 GB/s, of which 2 · 7/8 for each byte
  collective("all_reduce", "4", 10e-3);
  collective("all_gather", "8", 5e-3);
  const Figure figure = bus_bandwidth_figure(m.raw(), m.points());
  const Panel& all_reduce = panel_of(figure, "all_reduce");
  check_point(all_reduce, "8 GPUs", 1e9, 175.0);
  check_point(all_reduce, "4 GPUs", 1e9, 150.0);
  CHECK(all_reduce.series.size() == 4);  // each beside the model
  check_point(panel_of(figure, "all_gather"), "8 GPUs", 1e9, 175.0);
}
