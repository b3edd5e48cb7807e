// Designs of measurements on a GPU: every point can be predicted, has a name of its own, and is of a size that measures
// in the time that there is.

#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "validate/cuda/suites/operator_points.hpp"

using namespace foretrain;
using gpu::OperatorPoint;

namespace {

struct Design {
  const char* suite;
  std::vector<OperatorPoint> points;
};

const std::vector<Design>& designs() {
  static const std::vector<Design> all = {
#define OPERATOR_SUITE(name, ...) {#name, gpu::name##_points()},
#include "validate/cuda/core/suites.def"
  };
  return all;
}

std::string precision_of(const OperatorPoint& point) { return point.spec.text_or("precision", "none"); }

/// The scenario that a record of this point would be predicted as.
Scenario scenario_for(const OperatorPoint& point) {
  std::vector<std::string> overrides;
  for (const auto& [key, value] : gpu::scenario_of(point.spec)) overrides.push_back(key + "=" + value);
  return load_scenario_text("cluster: { node: dgx-h100, nodes: 1, gpus_per_node: 1 }\n", "point.yaml", overrides);
}

}  // namespace

TEST_CASE("Every designed point has a name of its own, and is a scenario that the model predicts") {
  // Keys of designs and of readers may not drift apart: each point goes the way that a record of it will go.
  for (const Design& design : designs()) {
    std::set<std::string> names;
    for (const OperatorPoint& point : design.points) {
      INFO(design.suite << ": " << gpu::name_of(point.spec));
      const double time = estimate(scenario_for(point)).time().value();
      REQUIRE(std::isfinite(time));
      // Nothing takes less than a kernel's launch, nothing designed for seconds takes a second on an H100.
      REQUIRE(time > 1e-7);
      REQUIRE(time < 1.0);
      CHECK(names.insert(point.name()).second);
    }
  }
}

TEST_CASE("About a quarter of each design is held out of fits, in every precision that is fitted") {
  for (const Design& design : designs()) {
    INFO(design.suite);
    std::map<std::string, std::pair<int, int>> counts;  // held out, all
    for (const OperatorPoint& point : design.points) {
      for (const std::string& group : {precision_of(point), std::string("all")}) {
        counts[group].first += gpu::held_out(gpu::name_of(point.spec)) ? 1 : 0;
        ++counts[group].second;
      }
    }
    // A fair quarter of n points is off by three standard deviations, 3·sqrt(n·0.25·0.75), at most.
    const double n = counts["all"].second;
    CHECK(std::abs(counts["all"].first - 0.25 * n) < 3.0 * std::sqrt(n * 0.25 * 0.75));
    for (const auto& [precision, count] : counts) {
      INFO(precision << ": " << count.first << " of " << count.second);
      if (count.second < 20) continue;
      CHECK(count.first > 0);
      CHECK(count.first < count.second / 2);
    }
  }
}

TEST_CASE("Quick points come first and are as many as their time allows") {
  // With --quick a point takes a tenth of a second and its preparation as much again. The suites' quick budgets are 20
  // s for gemm, 12 s for convolution, 12 s for attention, 10 s for streaming.
  const std::map<std::string, std::pair<int, int>> bounds = {
      {"gemm", {40, 70}}, {"convolution", {20, 40}}, {"attention", {6, 10}}, {"streaming", {20, 50}}};
  const auto is_quick = [](const OperatorPoint& point) { return point.quick; };
  for (const Design& design : designs()) {
    INFO(design.suite);
    const auto quick = std::ranges::count_if(design.points, is_quick);
    CHECK(quick >= bounds.at(design.suite).first);
    CHECK(quick <= bounds.at(design.suite).second);
    CHECK(std::ranges::is_partitioned(design.points, is_quick));
  }
}

TEST_CASE("The design of GEMMs covers sizes, precisions and storage") {
  std::set<std::string> precisions, families;
  std::set<std::pair<bool, bool>> storage;
  std::int64_t smallest = 1 << 30, largest = 0;
  for (const OperatorPoint& point : gpu::gemm_points()) {
    precisions.insert(precision_of(point));
    families.insert(point.family);
    storage.insert({point.spec.flag("transpose_a"), point.spec.flag("transpose_b")});
    smallest = std::min({smallest, point.spec.integer("n"), point.spec.integer("k")});
    largest = std::max({largest, point.spec.integer("m"), point.spec.integer("n")});
    // fp8 and int8 exist where both operands lie along k, in units of 16 bytes.
    if (precision_of(point) != "fp8" && precision_of(point) != "int8") continue;
    INFO(gpu::name_of(point.spec));
    CHECK(point.spec.flag("transpose_b"));
    CHECK_FALSE(point.spec.flag("transpose_a"));
    CHECK(point.spec.integer("n") % 16 == 0);
    CHECK(point.spec.integer("k") % 16 == 0);
  }
  CHECK(precisions == std::set<std::string>{"bf16", "fp16", "tf32", "fp32", "fp8", "fp64", "int8"});
  CHECK(storage.size() == 4);
  CHECK(families.count("drawn") == 1);
  CHECK(smallest <= 16);
  CHECK(largest >= 16384);
}

TEST_CASE("Operators bound by memory are measured by all patterns that constants are fitted to") {
  std::set<std::string> kinds;
  for (const OperatorPoint& point : gpu::streaming_points()) {
    kinds.insert(point.spec.kind);
    CHECK(gpu::traffic_of(point.spec).read + gpu::traffic_of(point.spec).written >= 1 << 14);
  }
  CHECK(kinds == std::set<std::string>{"elementwise", "embedding", "reduction"});
}
