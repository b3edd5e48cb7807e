// Which walks determine which level, on a machine whose caches are described as small: none of these takes long, and no
// test depends on how long.

#include "tests/catch.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/detect.hpp"

using namespace foretrain;

namespace {

/// One core at 2 GHz with caches of 32 and 128 KiB and of 4 MiB, and memory in which nothing lies outside of all
/// caches.
Node small_machine() {
  DetectedCpu cpu;
  cpu.name = "small";
  cpu.processors = 1;
  cpu.clock = Hertz(2e9);
  cpu.vector_bytes = 32;
  cpu.multiply_adds = 2;
  cpu.caches = {{1, Bytes(32768.0), 8, 1}, {2, Bytes(131072.0), 8, 1}, {3, Bytes(4194304.0), 16, 1}};
  return node_of_hardware_file(hardware_file(cpu, Bytes(402653184.0)));
}

std::vector<BenchmarkRow> rows_of(std::string_view benchmark, bool quick, Node node = small_machine()) {
  CalibrationSettings settings;
  settings.node = std::move(node);
  settings.quick = quick;
  settings.budget = Seconds(1e-3);
  std::vector<BenchmarkRow> rows;
  find_benchmark(benchmark)->measure(settings, [&](BenchmarkRow row) { rows.push_back(std::move(row)); });
  return rows;
}

std::set<std::string> working_sets(const std::vector<BenchmarkRow>& rows) {
  std::set<std::string> sets;
  for (const BenchmarkRow& row : rows) sets.insert(row.parameters.at("working_set"));
  return sets;
}

}  // namespace

TEST_CASE("Walks lie half inside of each cache, and no more than four times or twice the one before") {
  // Half of 32 KiB; half of 128, which is less than four times 32; of 4 MiB no more than twice 128 KiB.
  CHECK(working_sets(rows_of("memory_bandwidth", true)) == std::set<std::string>{"16 KiB", "64 KiB", "256 KiB"});
  // A second cache of 64 KiB has no walk of its own: its half is no more than the first. The third is the second that
  // is shown.
  Node near = small_machine();
  near.cpu.hierarchy->caches[1].size = Bytes(65536.0);
  CHECK(working_sets(rows_of("memory_bandwidth", true, near)) == std::set<std::string>{"16 KiB", "256 KiB"});
  // One of 1 MiB is shown by four times the first.
  near.cpu.hierarchy->caches[1].size = Bytes(1048576.0);
  CHECK(working_sets(rows_of("memory_bandwidth", true, near)) ==
        std::set<std::string>{"16 KiB", "128 KiB", "2048 KiB"});
}

TEST_CASE("Each walk has one row of all its rounds, a rate in bytes asked for") {
  const std::vector<BenchmarkRow> latency = rows_of("memory_latency", false);
  REQUIRE(latency.size() == 6);  // three levels, two kinds of pages
  for (const BenchmarkRow& row : latency) {
    CHECK(row.samples >= 15);  // three rounds of five
    CHECK(row.unit == "s");
    CHECK(row.measured < 1e-5);
  }
  const std::vector<BenchmarkRow> quick = rows_of("memory_bandwidth", true);
  REQUIRE(quick.size() == 9);  // read, written and copied
  for (const BenchmarkRow& row : quick) {
    CHECK(row.samples >= 9);
    CHECK(row.unit == "B/s");
    CHECK(row.measured > 1e6);
  }
}

TEST_CASE("The curve of latencies ends at an eighth of memory") {
  Node node = small_machine();
  node.cpu.memory = Bytes(524288.0);
  CHECK(working_sets(rows_of("memory_latency_curve", true, node)) ==
        std::set<std::string>{"16 KiB", "32 KiB", "64 KiB"});
}

TEST_CASE("Walks are predicted where the machine's caches are described") {
  Node node = small_machine();
  const BenchmarkRow row =
      row_of("memory_latency", {{"working_set", "16 KiB"}, {"pattern", "pointer_chase"}}, {{1e-9}}, "s");
  CHECK(find_benchmark("memory_latency")->predict(row, node));
  node.cpu.hierarchy.reset();
  CHECK_FALSE(find_benchmark("memory_latency")->predict(row, node));
}
