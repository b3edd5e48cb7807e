// `foretrain calibrate` of a GPU: from a folder, and with a script in the place of foretrain-gpu. All times are
// SYNTHETIC: bytes over 400 GB/s and 2 us a kernel, not measured on any GPU.

#include <nlohmann/json.hpp>

#include "model/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

const std::string machine =
    R"({"date":"2026-01-01T00:00:00Z","kernel":"6.1","driver":"000.00","processor":"a processor","versions":{},"gpus":[)"
    R"({"index":0,"name":"Synthetic 5000","compute_capability":"8.9","sms":100,"sm_clock_hz":2000000000,)"
    R"("memory_clock_hz":8000000000,"memory_bytes":34359738368,"memory_bus_bits":256,"l2_bytes":50331648,)"
    R"("power_limit_w":350,"pcie_generation":4,"pcie_width":16}],"links":[]})";

/// Cold elementwise kernels: the peak is 512 GB/s, of which 400 GB/s are 78 %.
std::string streaming_lines() {
  std::string lines;
  for (int power = 12; power <= 28; ++power) {
    const double elements = std::exp2(power);
    const double seconds = 2e-6 + 8.0 * elements / 400e9;
    lines += fmt::format(
        R"({{"suite":"streaming","name":"elementwise {0}","status":"measured","scenario":{{"workload.operator.kind":)"
        R"("elementwise","workload.operator.elements":"{0:.0f}","workload.operator.precision":"fp32"}},)"
        R"("parameters":{{"cache":"cold","held_out":"{1}"}},"device":0,"unit":"s","values":[{2}]}})",
        elements, power % 4 == 0, seconds);
    lines += "\n";
  }
  return lines;
}

std::string measured_folder(const TemporaryFolder& folder) {
  std::filesystem::create_directories(folder.file("raw"));
  write_file(folder.file("raw/machine.json"), machine);
  write_file(folder.file("raw/streaming.jsonl"), streaming_lines());
  return folder.file("raw");
}

/// A script in the place of foretrain-gpu, for as long as the object lives.
class FakeProgram {
 public:
  FakeProgram(const TemporaryFolder& folder, const std::string& script) {
    const std::string program = folder.file("foretrain-gpu", "#!/bin/sh\n" + script);
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    setenv("FORETRAIN_GPU_PROGRAMS", folder.file("").c_str(), 1);
  }
  ~FakeProgram() { unsetenv("FORETRAIN_GPU_PROGRAMS"); }
  FakeProgram(const FakeProgram&) = delete;
  FakeProgram& operator=(const FakeProgram&) = delete;
};

}  // namespace

TEST_CASE("A folder measured elsewhere becomes a calibration and a machine, and both are used") {
  const TemporaryFolder folder;
  const std::string output = folder.file("calibration.json"), node = folder.file("node.yaml");
  check_has(
      output_of({"calibrate", "--from", measured_folder(folder), "-o", output, "--hardware", node}),
      {"unknown to the catalogue", "streaming.bandwidth_efficiency", "GEMMs: nothing measured", "bar 8.0 %: met"});
  // 1 GiB of fp32 read and written: 2 x 4.29 GB over 400 GB/s = 21.5 ms, a size that was not measured.
  const std::string scenario = folder.file("run.yaml",
                                           "cluster: { node: node.yaml }\nworkload: { operator: { kind: elementwise, "
                                           "elements: 1073741824, precision: fp32 } }\n");
  const auto calibrated = nlohmann::json::parse(output_of({"predict", scenario, "--calibration", output, "--json"}));
  CHECK(calibrated.at("time_s").get<double>() == Approx(8.59e9 / 400e9).epsilon(0.02));
  // Points without noise leave next to no uncertainty; published shares would be those of work that no table measures.
  CHECK(calibrated.at("uncertainty").at("high_s").get<double>() < 1.05 * calibrated.at("time_s").get<double>());
  const auto published = nlohmann::json::parse(run_program({"predict", scenario, "--json"}).output);
  CHECK(published.at("uncertainty").at("causes").at(0).at("constant") == "uncertainty.small_kernel");
  CHECK(published.at("uncertainty").at("high_s").get<double>() > 1.1 * published.at("time_s").get<double>());
}

TEST_CASE("Any of the parts that were measured will do, in folders or packed as on_gpu.sh packs them") {
  const TemporaryFolder folder;
  const std::string raw = measured_folder(folder);
  const std::string output = folder.file("calibration.json");
  std::filesystem::create_directories(folder.file("host"));
  write_file(folder.file("host/machine.json"), machine);
  write_file(folder.file("host/copy.jsonl"),
             R"({"suite":"copy","name":"fresh","status":"measured","scenario":{},"parameters":{"what":"fresh_copy",)"
             R"("bytes":"1000000000"},"device":0,"unit":"s","values":[0.5]})"
             "\n");
  const std::string packed = folder.file("streaming.tar");
  REQUIRE(run_filter({"tar", "-C", raw, "-cf", packed, "machine.json", "streaming.jsonl"}, "").status == 0);
  check_has(output_of({"calibrate", "--from", packed, folder.file("host"), "-o", output}),
            {"streaming.bandwidth_efficiency", "host.pageable_copy_gbps"});
  // Other files, and measurements of another machine, are refused.
  write_file(folder.file("torn.tar"), "no archive");
  check_refused({"calibrate", "--from", folder.file("torn.tar"), "-o", output}, {"torn.tar cannot be unpacked"});
  std::string other = machine;
  other.replace(other.find("Synthetic 5000"), 14, "Synthetic 6000");
  write_file(folder.file("host/machine.json"), other);
  check_refused({"calibrate", "--from", raw, folder.file("host"), "-o", output},
                {"measurements of another machine (Synthetic 6000)"});
}

TEST_CASE("Where there is a GPU it is measured first; its status decides what follows") {
  const TemporaryFolder folder;
  const std::string raw = measured_folder(folder), output = folder.file("out.json");
  const std::string copy = "[ \"$1\" = probe ] && exit 0\nmkdir -p \"$3\" && cp " + raw + "/* \"$3\"\n";
  SECTION("all measured") {
    const FakeProgram program(folder, copy + "exit 0\n");
    output_of({"calibrate", "--only", "gpu.streaming", "-o", output});
    CHECK(std::filesystem::exists(output + ".measurements/streaming.jsonl"));
    CHECK_THAT(read_text_file(output), Catch::Contains("foretrain calibration 1"));
  }
  SECTION("some points failed: the rest is fitted, and the status says so") {
    const FakeProgram program(folder, copy + "exit 1\n");
    const FilterResult result = run_program({"calibrate", "--only", "gpu", "-o", output});
    CHECK(result.status == 1);
    CHECK_THAT(result.errors, Catch::Contains("some measurements failed"));
    CHECK(std::filesystem::exists(output));
  }
  SECTION("interrupted: what was measured is kept and fitted") {
    const FakeProgram program(folder, copy + "exit 130\n");
    const FilterResult result = run_program({"calibrate", "--only", "gpu", "-o", output});
    CHECK(result.status == 1);
    CHECK_THAT(result.errors, Catch::Contains("measures the rest"));
  }
  SECTION("it could not measure") {
    const FakeProgram program(folder, "[ \"$1\" = probe ] && exit 0\nexit 2\n");
    CHECK(run_program({"calibrate", "--only", "gpu", "-o", output}).status == 2);
    CHECK_FALSE(std::filesystem::exists(output));
  }
  SECTION("it finds no GPU") {
    const FakeProgram program(folder, "echo 'no NVIDIA driver was found: install one' >&2\nexit 2\n");
    check_refused({"calibrate", "--only", "gpu.gemm", "-o", output},
                  {"no GPU can be measured here: no NVIDIA driver was found", "--from DIR"});
    CHECK_FALSE(std::filesystem::exists(output));
  }
}

TEST_CASE("What is wrong with a folder, a part or a calibration is said, and nothing is written") {
  const TemporaryFolder folder;
  const std::string raw = measured_folder(folder), output = folder.file("out.json");
  const auto refused = [&](std::vector<std::string> arguments, const std::string& why) {
    arguments.insert(arguments.end(), {"-o", output});
    const FilterResult result = run_program(arguments);
    INFO(why << ": " << result.errors);
    CHECK(result.status == 2);
    CHECK_THAT(result.errors, Catch::Contains(why));
    CHECK_FALSE(std::filesystem::exists(output));
  };
  refused({"calibrate", "--from", folder.file("none")}, "no folder");
  refused({"calibrate", "--only", "gpu.gem"}, "did you mean gpu.gemm?");
  refused({"calibrate", "--only", "gpu,disk"}, "by two commands");
  refused({"calibrate", "--from", raw, "--only", "disk"}, "nothing is measured now");
  write_file(folder.file("raw/streaming.jsonl"), streaming_lines() + "{\"suite\":\"streaming\",\"na");
  refused({"calibrate", "--from", raw}, "streaming.jsonl:18:1: no record (");
  write_file(folder.file("raw/machine.json"), "{}");
  refused({"calibrate", "--from", raw}, "key 'gpus' not found");
  check_refused({"predict", ring_of_four, "--calibration", folder.file("none.json")}, {"none.json"});
  const FilterResult other = run_program({"predict", ring_of_four, "--calibration", folder.file("x.json", "{}")});
  CHECK(other.status == 2);
}

TEST_CASE("Measured operators lie beneath the roofs of their GPU") {
  const TemporaryFolder folder;
  CHECK_THAT(output_of({"plot", "roofline", "--measurements", measured_folder(folder)}),
             Catch::Contains("synthetic-5000"));
}

}  // namespace foretrain::test
