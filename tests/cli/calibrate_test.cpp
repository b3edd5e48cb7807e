// `foretrain calibrate`: what it refuses before it measures anything.
#include "model/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

/// Of a complete calibration's file, up to its rows.
const std::string complete_head =
    R"({"kind": "calibration of a machine", "machine": {"processor": "a processor", "cores": 2, "memory_bytes": 1e9,)"
    R"( "kernel": "Linux", "versions": [], "date": "2026-01-01"}, "devices": [], "quick": true, "complete": true,)"
    R"( "hardware": "preset: p2.8xlarge", "rows": [)";

}  // namespace

TEST_CASE("A calibration says what is wrong before it measures") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.json");
  CHECK(run_program({"calibrate"}).status == 2);
  check_refused({"calibrate", "--only", "memry", "-o", output}, {"did you mean memory?"});
  check_refused({"calibrate", "-o", folder.file("missing/out.json")}, {"name another"});
  CHECK(run_program({"calibrate", "--directory", folder.file("missing"), "-o", output}).status == 2);
  CHECK_FALSE(std::filesystem::exists(output));
}

TEST_CASE("A calibration of the disk alone says nothing of caches, and fails where nothing can be measured") {
  const TemporaryFolder folder;
  // No file can be made in /proc.
  const FilterResult nowhere =
      run_program({"calibrate", "--quick", "--only", "disk", "--directory", "/proc", "-o", folder.file("none.json")});
  CHECK(nowhere.status == 1);
  CHECK_THAT(nowhere.errors, Catch::Contains("nothing could be measured: "));
  CHECK_THAT(nowhere.output, !Catch::Contains("consistency"));
}

TEST_CASE("An interrupted calibration leaves a complete one as it was") {
  const TemporaryFolder folder;
  const std::string before = complete_head + "]}";
  const std::string output = folder.file("calibration.json", before);
  // By the signal of Ctrl-C, after a second; measuring memory takes several.
  run_filter({"timeout", "-s", "INT", "1", FORETRAIN_PROGRAM, "calibrate", "--only", "memory", "-o", output}, "");
  CHECK(read_text_file(output) == before);
}

TEST_CASE("A walk over memory is predicted by name, in text and JSON") {
  check_has(output_of({"predict", "hierarchy-l1"}), {"1.48 ns", "L1"});
  const FilterResult json = run_program({"predict", "hierarchy-l1", "--json"});
  CHECK_THAT(json.output, Catch::Contains("time_per_access_s"));
}

TEST_CASE("A picture of memory's latency needs a calibration that has measured it") {
  const TemporaryFolder folder;
  const std::string picture = folder.file("out.svg");
  const auto row = [](const std::string& size) {
    return R"({"benchmark": "memory_latency_curve", "device": "cpu", "parameters": {"working_set": ")" + size +
           R"(", "pattern": "pointer_chase"}, "measured": 1.5e-9, "unit": "s", "spread": 0.1, "best": 1.4e-9, )" +
           R"("samples": 9})";
  };
  CHECK(run_program({"plot", "latency", folder.file("empty.json", complete_head + "]}"), "-o", picture}).status == 2);
  CHECK(run_program({"plot", "latency", folder.file("other.json", "{}"), "-o", picture}).status == 2);
  CHECK_FALSE(std::filesystem::exists(picture));
  output_of({"plot", "latency", folder.file("good.json", complete_head + row("16 KiB") + "," + row("1 MiB") + "]}"),
             "-o", picture});
  CHECK_THAT(read_text_file(picture), Catch::Contains("</svg>"));
}

}  // namespace foretrain::test
