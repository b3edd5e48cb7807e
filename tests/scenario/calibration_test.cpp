#include "model/scenario/hardware/calibration_reader.hpp"

#include "model/scenario/load/load.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

/// A calibration with every constant at its minimum; `skip` is left out, `value` put in place of the first one's.
std::string calibration_text(const std::string& skip = "", const std::string& value = "") {
  std::string text = "kind: calibration\nname: test\nconstants:\n";
  bool first = true;
  for (const ConstantRow& row : calibration_rows()) {
    if (row.name == skip) continue;
    const std::string number = first && !value.empty() ? value : fmt::format("{}", row.minimum);
    text += fmt::format("  {}: {{ value: {}{}{}, kind: fit, source: \"a source\" }}\n", row.name, number,
                        row.unit.empty() ? "" : " ", row.unit);
    first = false;
  }
  return text;
}

std::string complaint(const std::string& text) {
  return test::complaint_of([&] {
    const YamlNode node = parse_yaml(text, "c.yaml");
    read_calibration(Field(node, ""));
  });
}

}  // namespace

TEST_CASE("Every constant arrives in its field, with its source") {
  const YamlNode node = parse_yaml(calibration_text(), "c.yaml");
  Calibration calibration = read_calibration(Field(node, ""));
  CHECK(calibration.name == "test");
  REQUIRE(calibration.constants.size() == calibration_rows().size());
  for (const ConstantRow& row : calibration_rows()) {
    INFO(row.name);
    CHECK(row.field(calibration) == Approx(row.minimum));
  }
  CHECK(calibration.constants.front().kind == ConstantKind::fit);
  CHECK(calibration.constants.front().source == "a source");
}

TEST_CASE("Missing, unknown and senseless constants are refused") {
  const ConstantRow& first = calibration_rows().front();
  CHECK(complaint(calibration_text()) == "accepted");
  CHECK(
      complaint(calibration_text(first.name)).find(fmt::format("constants.{}: this constant is missing", first.name)) !=
      std::string::npos);
  CHECK(complaint(calibration_text() + "  " + first.name + "x: { value: 1, kind: fit, source: s }\n")
            .find(fmt::format("unknown constant; did you mean {}?", first.name)) != std::string::npos);
  const std::string too_large = fmt::format("{}", 2.0 * first.maximum + 1.0);
  CHECK(complaint(calibration_text("", too_large)).find("is outside of what is sensible") != std::string::npos);
  CHECK(complaint("kind: node\nname: x\nconstants: {}\n").find("c.yaml:1:7: kind: this file is no calibration") == 0);
}

TEST_CASE("A constant with a unit must carry it") {
  for (const ConstantRow& row : calibration_rows()) {
    if (row.unit != "us") continue;
    std::string text =
        calibration_text(row.name) + fmt::format("  {}: {{ value: 1, kind: fit, source: s }}\n", row.name);
    CHECK(complaint(text).find("\"1\" has no unit; write \"1 us\"") != std::string::npos);
    return;
  }
  FAIL("no constant in microseconds");
}

TEST_CASE("A scenario may name a calibration of its own") {
  const TemporaryFolder folder;
  folder.write("mine.yaml", calibration_text());
  const auto scenario = folder.write("s.yaml",
                                     "cluster: { node: dgx-a100-80gb }\n"
                                     "workload: { operator: { kind: copy, size: 1 GB } }\n"
                                     "calibration: mine.yaml\n");
  CHECK(load_scenario(scenario).calibration.name == "test");
  CHECK(load_scenario(scenario, {"calibration=published"}).calibration.name == "published");
}

TEST_CASE("A machine's calibration is read again when its base has changed") {
  const TemporaryFolder folder;
  const ConstantRow& first = calibration_rows().front();
  folder.write("base.yaml", calibration_text());
  const auto machine = folder.write("machine.yaml",
                                    "format: foretrain calibration 1\nkind: calibration\nname: a machine\n"
                                    "base: ./base.yaml\nconstants: {}\n"
                                    "gpu: { name: t4, compute_capability: 7.5 }\n");
  const auto value = [&] {
    Calibration calibration = load_calibration(machine);
    return static_cast<double>(first.field(calibration));
  };
  CHECK(value() == Approx(first.minimum));
  folder.write("base.yaml", calibration_text("", fmt::format("{}", first.maximum)));
  CHECK(value() == Approx(first.maximum));
}

TEST_CASE("A calibration whose base is a machine's, or itself, is refused") {
  const TemporaryFolder folder;
  const std::string own =
      folder.write("own.yaml", fmt::format("format: foretrain calibration 1\nkind: calibration\nname: mine\nbase: {}\n",
                                           (folder.path() / "own.yaml").string()));
  CHECK(test::complaint_of([&] { load_calibration(own); }) ==
        own + ":4:7: base: the base is a calibration of a machine itself; published");
}

TEST_CASE("A machine's calibration lays its constants over the base") {
  const std::string file = FORETRAIN_SOURCE_DIR "/tests/scenario/bad/calibration.json";
  const YamlNode& document = cached_yaml_file(file);
  const Calibration calibration = read_calibration(Field(document, ""));
  const Calibration base = load_default_calibration();
  CHECK(calibration.matmul.fixed_us == Approx(4.5));
  CHECK(calibration.matmul.tile_loss == Approx(7.5));
  CHECK(calibration.matmul.exposed_share == base.matmul.exposed_share);
  REQUIRE(calibration.calibrated);
  CHECK(calibration.calibrated->memory_latency.value() == Approx(310e-9));
  REQUIRE(calibration.fitted);
  CHECK(calibration.fitted->covariance[0][1] == Approx(-0.02));
  CHECK(calibration.fitted->spread.at("matmul") == Approx(0.04));
  YamlNode without_spread = document;
  without_spread.erase("spread");
  CHECK(read_calibration(Field(without_spread, "")).fitted->spread.empty());
  CHECK(calibration.constants.size() == base.constants.size());
  for (const Constant& constant : calibration.constants) {
    if (constant.name == "matmul.fixed_us") CHECK(constant.source == "here");
  }
}

TEST_CASE("A processor that trains dispatches and sends by itself") {
  const Scenario whole = load_scenario("data-parallel-hosts", {"cluster.node.gpu.processor.transfer_rate=0.5 GB/s"});
  REQUIRE(whole.cluster.node.gpu.processor);
  CHECK(whole.calibration.host.dispatch_us == 0.0);  // it is in each operator's time
  CHECK(whole.calibration.step.kernel_stretch == 1.0);
  // At 1 Gbit/s, 0.125 GB/s, sending takes a quarter of a core that could send 0.5 GB/s, and half of half a core.
  CHECK(whole.calibration.collective.overlap_slowdown == Approx(0.25));
  const Scenario half = load_scenario("data-parallel-hosts", {"cluster.node.gpu.processor.transfer_rate=0.5 GB/s",
                                                              "cluster.node.gpu.processor.share=0.5"});
  CHECK(half.calibration.collective.overlap_slowdown == Approx(0.5));
  // A GPU's calibration stays as it was.
  CHECK(load_scenario("resnet-50-dgx1-v100").calibration.host.dispatch_us > 0.0);
  CHECK(std::get<TrainWorkload>(whole.workload).code.kernels == KernelSet::unfused);
}

TEST_CASE("Latencies in cycles and bandwidths in bytes a cycle are of the core's clock") {
  const Scenario scenario = load_scenario_text(
      "cluster:\n  node:\n    preset: p2.8xlarge\n    cpu:\n      boost_clock: 2.5 GHz\n"
      "      hierarchy: { preset: broadwell-ep, caches: { L1: { latency: 5 cycles, read: 48 B/cycle } } }\n"
      "workload: { operator: { kind: memory_walk, on: cpu, working_set: 1 MiB } }\n",
      "walk.yaml");
  const CacheLevel& l1 = scenario.cluster.node.cpu.hierarchy->caches.front();
  CHECK(l1.latency.value() == Approx(2e-9));
  CHECK(l1.read.value() == Approx(120e9));
}

TEST_CASE("A core that cannot send as fast as its cards sends all the time, and no more") {
  const Scenario slow = load_scenario("data-parallel-hosts", {"cluster.node.gpu.processor.transfer_rate=0.05 GB/s"});
  CHECK(slow.calibration.collective.overlap_slowdown == Approx(1.0));
}
