#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

using namespace foretrain::test;

namespace {
const std::string samples = FORETRAIN_SOURCE_DIR "/tests/import/data/";
}

TEST_CASE("an imported machine is a scenario's node") {
  const TemporaryFolder folder;
  const std::string node = folder.file("node.yaml");
  output_of({"import", "nccl-topology", samples + "nccl_topology_hgx_h100.xml", "-o", node});
  output_of({"predict", ring_of_four, "--set", "cluster.node=" + node});
}

TEST_CASE("an imported table is validated as it stands") {
  const TemporaryFolder folder;
  const std::string table = folder.file("cases.csv");
  output_of({"import", "nccl-tests", samples + "nccl_tests_all_reduce.txt", "-o", table});
  const auto validated = run_program({"validate", "--cases", table, "--fidelity", "estimate"});
  CHECK(validated.status == 0);
  CHECK_THAT(validated.output, Catch::Contains("nccl_tests_all_reduce-in-place"));
}

TEST_CASE("a trace is reported beside a prediction, packed or not") {
  const auto report = run_program(
      {"import", "kineto", samples + "kineto_gpu.json.gz", "--scenario", "gpt2-xl-dgx-a100", "--fidelity", "estimate"});
  CHECK(report.status == 0);
  CHECK_THAT(report.output, Catch::Contains("predicted") && Catch::Contains("exposed communication"));
}

TEST_CASE("a trace is diagnosed by category, beside a step time without profiler, and as JSON") {
  const std::vector<std::string> diagnose = {"diagnose", "gpt2-xl-dgx-a100", "--fidelity",
                                             "estimate", "--trace",          samples + "kineto_gpu.json.gz"};
  check_has(output_of(diagnose), {"Measured  10.0 ms", "idle: ", "all-reduce", "missing", "The GPU computes"});
  const auto json = nlohmann::json::parse(output_of(with(diagnose, {"--measured", "12 ms", "--json"})));
  CHECK(json["measured_s"] == 0.012);
  CHECK(json["trace"]["steps"] == 2);
  CHECK(json["trace"]["measured_breakdown_s"]["exposed_communication"] == Approx(0.74e-3));  // with copies
  check_refused({"diagnose", "gpt2-xl-dgx-a100", "--trace", samples + "megatron_gpt3.sh"}, {"megatron_gpt3.sh:1:1"});
}

TEST_CASE("a file that is none of its kind, or is missing, ends with status 2 and writes nothing") {
  const TemporaryFolder folder;
  const auto wrong = run_program({"import", "slurm", samples + "megatron_gpt3.sh", "-o", folder.file("out.yaml")});
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.errors, Catch::Contains("megatron_gpt3.sh:8:1") && Catch::Contains("no SwitchName"));
  CHECK_FALSE(std::filesystem::exists(folder.file("out.yaml")));
  CHECK(run_program({"import", "kineto", folder.file("nothing.json")}).status == 2);
  CHECK(run_program({"import", "kineto", folder.file("broken.json.gz", "\x1f\x8b\x08 no gzip")}).status == 2);
}

TEST_CASE("a log becomes a table that is validated, a scenario, and causes of its slow step") {
  const TemporaryFolder folder;
  const std::string log = samples + "log_megatron.txt", table = folder.file("runs.csv"), run = folder.file("run.yaml");
  const auto imported = run_program({"import", "log", log, log, "-o", table, "--write-scenario", run});
  check_has(imported.errors, {"log_megatron.txt and 1 more: the machine is assumed to be dgx-h100"});
  const auto stated = run_program({"import", "log", log, "--set", "cluster.node=dgx-a100-80gb"});
  CHECK(stated.errors.find("assumed to be") == std::string::npos);
  const auto validated = run_program({"validate", "--cases", table, "--fidelity", "estimate"});
  CHECK(validated.status == 0);
  check_has(validated.output, {"runs   2"});
  check_has(words_of(output_of({"diagnose", run, "--log", log})),
            {"Measured 1.01 s", "median of 2 steps (1 warm-up, 1 behind evaluation left out)", "data loader too slow",
             "py-spy", "RDMA instead of TCP"});
  check_has(output_of({"diagnose", run, "--measured", "1.01 s", "--json"}), {"\"measured_s\": 1.01", "\"command\""});
  check_refused({"diagnose", run}, {"--measured", "--log"});
  check_refused({"diagnose", run, "--measured", "3"}, {"--measured 3", "no unit"});
  check_refused({"diagnose", run, "--measured", "0 s"}, {"not above zero"});
  check_refused({"import", "log", run}, {"no line has a step time"});
}

TEST_CASE("a plan becomes its trainer's arguments and traces; measured rows lose their names") {
  const TemporaryFolder folder;
  const std::string run = "gpt3-175b-1024-a100", script = folder.file("train.sh");
  check_has(output_of({"export", "megatron", run, "--set", "plan.framework=megatron"}),
            {"--tensor-model-parallel-size 8", "torchrun --nnodes 128"});
  output_of({"export", "megatron", run, "-o", script});
  check_has(output_of({"import", "megatron", script, "--set", "cluster.node=dgx-a100-80gb"}), {"pipeline: 8"});
  const auto deepspeed = run_program({"export", "deepspeed", run});
  check_has(deepspeed.output, {"\"train_batch_size\": 1536"});
  check_has(deepspeed.errors, {"not in this file: plan.pipeline: 8", "not in this file: workload.train.model"});
  const std::string traces = folder.file("traces");
  output_of({"export", "chakra", "traffic-baseline", "-o", traces});
  check_has(output_of({"import", "chakra", traces + "/step.0.et"}), {"gradient"});
  check_refused({"export", "chakra", "traffic-baseline", "-o", script}, {"train.sh is a file; name a folder with -o"});
  check_refused({"export", "chakra", "sync-ring-4", "-o", traces}, {"sync-ring-4.yaml", "workload: no training"});
  check_refused({"export", "nemo", run, "--set", "plan.tensr=8"}, {"plan.tensr"});
  const std::string rows = folder.file("runs.csv", "case,base,measured.step_time\njoe@host," + run + ",34.5 s\n");
  const auto shared = run_program({"share", rows});
  check_has(shared.output, {"shared-1,shared,dgx-a100-80gb", "34.5 s"});
  check_has(shared.errors, {"Removed: 1 case names"});
  CHECK(shared.output.find("joe") == std::string::npos);
  const std::string failed = "case,base,measured.step_time\nfull," + run + ",OOM\n";
  const auto kept = run_program({"share", folder.file("some.csv", failed + "one," + run + ",34.5 s\n")});
  check_has(kept.errors, {"1 rows out of memory (OOM)"});
  CHECK(kept.output.find("OOM") == std::string::npos);
  check_refused({"share", folder.file("all.csv", failed)}, {"all.csv:2:", "measured.step_time"});
  check_refused({"share", folder.file("bad.csv", "case,plan.tensr\na,2\n")}, {"bad.csv:2:"});
}
