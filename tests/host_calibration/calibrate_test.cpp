// The benchmarks of a machine: their table, their statistics, and the file that keeps them.
#include "validate/host_calibration/calibrate.hpp"

#include "model/base/error.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("Every benchmark has a name of its own, a part that runs, and time to do so") {
  std::set<std::string_view> names;
  double total = 0.0, quick = 0.0;
  for (const HostBenchmark& benchmark : host_benchmarks()) {
    INFO(benchmark.name);
    CHECK(names.insert(benchmark.name).second);
    CHECK(find_benchmark(benchmark.name) == &benchmark);
    CHECK(std::ranges::find(calibration_parts, benchmark.part) != calibration_parts.end());
    CHECK(benchmark.measure != nullptr);
    total += benchmark.budget.value();
    quick += benchmark.quick_budget.value();
  }
  // The promise: five minutes, and one for --quick, allocation and warm-up included.
  CHECK(total <= 240.0);
  CHECK(quick <= 48.0);
}

TEST_CASE("A calibration survives its file") {
  CalibrationReport report;
  report.machine = {"a processor", 2, Bytes(1e9), "Linux", "2026-01-01"};
  report.complete = true;
  report.rows.push_back(row_of("memory_latency", {{"working_set", "16 KiB"}}, {{1e-9, 2e-9, 3e-9}}, "s"));
  report.rows.back().predicted = 0.5e-9;
  report.rows.push_back(not_measured("memory_latency", {}, "no reason"));
  const TemporaryFolder folder;
  const std::string path = folder.write("calibration.json", to_json(report)).string();
  const CalibrationReport read = read_calibration_report(path);
  CHECK(to_json(read) == to_json(report));
  REQUIRE(read.rows.size() == 2);
  // The median is 2 ns; the quartiles lie at 1.5 and 2.5 ns.
  CHECK(read.rows[0].values == std::vector<double>{1e-9, 2e-9, 3e-9});
  CHECK(read.rows[0].measured == Approx(2e-9));
  CHECK(read.rows[0].spread == Approx(0.5));
  // 0.5 ns predicted, 1 ns the best sample.
  CHECK(*read.rows[0].error() == Approx(-0.5));
  CHECK(!read.rows[1].error());
  CHECK_THROWS_AS(read_calibration_report(folder.write("b.json", R"({"kind": "host measurements"})")), ScenarioError);
}

TEST_CASE("Rows are predicted by their benchmark") {
  CalibrationReport report;
  const auto add = [&](const char* benchmark, std::map<std::string, std::string> parameters, double measured) {
    report.rows.push_back(row_of(benchmark, std::move(parameters), {{measured, measured, measured}}, "s"));
  };
  const std::map<std::string, std::string> cached = {{"call", "0.5 us"}, {"copy", "8192 MB/s"}, {"block", "8 KiB"}};
  add("page_cache_read", cached, 1.5e-6);
  add("no such benchmark", {}, 1.0);
  predict_rows(report, Node{});
  CHECK(*report.rows[0].predicted == Approx(1.5e-6));
  CHECK_FALSE(report.rows[1].predicted);
}

TEST_CASE("A row keeps its samples, of very many a part that is spread over all") {
  Sampled few{{3.0, 1.0, 2.0}};
  CHECK(row_of("memory_latency", {}, few, "s").values == few.values);
  // 0 … 999: every fifth, from the first on.
  Sampled many;
  for (int i = 0; i < 1000; ++i) many.values.push_back(i);
  const BenchmarkRow row = row_of("memory_latency", {}, many, "s");
  REQUIRE(row.values.size() == kept_samples);
  CHECK(row.values[1] == 5.0);
  CHECK(row.values.back() == 995.0);
  CHECK(row.samples == 1000);
}

TEST_CASE("Which samples are best is identified by their unit, what counts by their benchmark") {
  CHECK(row_of("memory_latency", {}, {{3.0, 1.0, 2.0}}, "s").best == 1.0);
  CHECK(row_of("memory_bandwidth", {}, {{3.0, 1.0, 2.0}}, "B/s").best == 3.0);
  // Of a processor the best sample counts, of a disk the median.
  CHECK(row_of("memory_latency", {}, {{3.0, 1.0, 2.0}}, "s").reference() == 1.0);
  CHECK(row_of("disk_read", {}, {{3.0, 1.0, 2.0}}, "B/s").reference() == 2.0);
}
