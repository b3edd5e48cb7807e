// Traces beside their prediction: this project's own measured steps, and a few events whose sums are known.
#include "reports/diagnose/trace_diagnosis.hpp"

#include <fmt/ranges.h>

#include <cstdlib>

#include "model/scenario/load/cases.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/import/importer.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

const std::string h200 = FORETRAIN_SOURCE_DIR "/validate/measurements/2026-11-26-h200/";

/// The list of kernels of a measured step, beside what is predicted.
TraceDiagnosis diagnosis_of_step(const std::string& name) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
  for (const Case& row : read_cases(h200 + "cases_pytorch.csv")) {
    if (row.name != "pytorch-" + name) continue;
    const std::string file = h200 + "kernels-" + name + ".json";
    const RankTrace trace{file, summarise_kineto(read_imported_file(file), file)};
    return diagnose_traces(scenario_of(row), std::span(&trace, 1), Seconds(row.measured.front().value),
                           Fidelity::estimate);
  }
  throw UsageError("no step " + name);
}

constexpr const char* two_nodes = R"(
cluster: { node: dgx-a100-80gb, nodes: 2 }
workload:
  train:
    model: { family: gpt, layers: 4, hidden: 1024, heads: 16, vocabulary: 51200, sequence: 1024 }
    global_batch: 16
    micro_batch: 1
)";

/// A step of 10 ms: a kernel, and an all-reduce of 8 MB among 16 GPUs that ends at 5 ms.
RankTrace rank_with(const std::string& file, double all_reduce_ms) {
  const std::string text = fmt::format(
      R"([{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","ts":0,"dur":10000}},
         {{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":0,"dur":5,"args":{{"correlation":1}}}},
         {{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":6,"dur":5,"args":{{"correlation":2}}}},
         {{"ph":"X","cat":"kernel","name":"gemm","ts":10,"dur":990,"args":{{"correlation":1}}}},
         {{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","ts":{},"dur":{},"args":{{"correlation":2,
           "Collective name":"allreduce","In msg nelems":4000000,"Out msg nelems":4000000,"dtype":"BFloat16",
           "Group size":16,"Process Group Name":"0"}}}}])",
      5000.0 - all_reduce_ms * 1000.0, all_reduce_ms * 1000.0);
  return {file, summarise_kineto(text, file)};
}

}  // namespace

TEST_CASE("nine tenths of what measured steps differ from the predicted ones have a category") {
  for (const char* name :
       {"bert-base-b32-s128-bf16-eager", "bert-base-b32-s128-tf32-eager", "bert-base-b32-s512-bf16-eager",
        "gpt2-b1-s1024-bf16-eager", "gpt2-b4-s512-bf16-eager", "gpt2-b16-s1024-bf16-eager",
        "gpt2-medium-b8-s1024-bf16-eager", "gpt3-1.3b-b8-s2048-bf16-eager", "llama3.2-1b-b8-s2048-bf16-eager",
        "resnet-50-b32-bf16-eager", "resnet-18-d2l-b256-fp32-eager", "llama3.2-3b-b2-s4096-bf16-eager"}) {
    const TraceDiagnosis diagnosis = diagnosis_of_step(name);
    INFO(name << to_text(diagnosis));
    CHECK(diagnosis.explained >= 0.9);
    Seconds expected, measured;
    for (const TraceRow& row : diagnosis.rows) {
      expected += row.expected;
      measured += row.measured;
    }
    CHECK(expected / diagnosis.expected == Approx(1.0).epsilon(1e-3));
    CHECK(measured / diagnosis.measured == Approx(1.0).epsilon(1e-3));
  }
}

TEST_CASE("steps whose GPU waits for the CPU are host-bound, others are not") {
  CHECK(verdict_of(diagnosis_of_step("bert-base-b32-s128-bf16-eager")).starts_with("Host-bound: the GPU waits 49"));
  CHECK(verdict_of(diagnosis_of_step("gpt2-b1-s1024-bf16-eager")).starts_with("Host-bound"));
  CHECK(verdict_of(diagnosis_of_step("gpt3-1.3b-b8-s2048-bf16-eager")).starts_with("The GPU computes"));
}

TEST_CASE("a step of no time is refused, also of a kernel that takes none") {
  const std::string text = R"([{"ph":"X","cat":"kernel","name":"gemm","ts":10,"dur":0,"args":{}}])";
  const RankTrace trace{"trace.json", summarise_kineto(text, "trace.json")};
  const Scenario scenario = load_scenario_text(two_nodes, "scenario.yaml");
  CHECK_THROWS_WITH(diagnose_traces(scenario, std::span(&trace, 1), std::nullopt, Fidelity::estimate),
                    Catch::Contains("trace.json: ") && Catch::Contains("--measured"));
  const TraceDiagnosis diagnosis = diagnose_traces(scenario, std::span(&trace, 1), Seconds(0.01), Fidelity::estimate);
  CHECK(to_text(diagnosis).find("nan") == std::string::npos);
}

TEST_CASE("the GPU computes as long as its kernels do: neither what nobody explains nor copies count") {
  const std::string text = R"([{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","ts":0,"dur":10000},
      {"ph":"X","cat":"kernel","name":"gemm","ts":0,"dur":7500,"args":{}},
      {"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","ts":9500,"dur":500,"args":{}}])";
  const RankTrace trace{"trace.json", summarise_kineto(text, "trace.json")};
  const Scenario scenario = load_scenario_text(two_nodes, "scenario.yaml");
  const TraceDiagnosis diagnosis = diagnose_traces(scenario, std::span(&trace, 1), std::nullopt, Fidelity::estimate);
  CHECK(diagnosis.parts.compute / Seconds(7.5e-3) == Approx(1.0));
  CHECK(diagnosis.parts.exposed_communication / Seconds(0.5e-3) == Approx(1.0));
  CHECK(diagnosis.parts.total() / Seconds(10e-3) == Approx(1.0));
  CHECK(verdict_of(diagnosis).starts_with("The GPU computes 75"));
}

TEST_CASE("the rank whose collectives are shortest comes last, and the shortest says the bandwidth") {
  const Scenario scenario = load_scenario_text(two_nodes, "scenario.yaml");
  const RankTrace ranks[] = {rank_with("rank0.json", 4.0), rank_with("rank1.json", 1.0)};
  const TraceDiagnosis diagnosis = diagnose_traces(scenario, ranks, std::nullopt, Fidelity::estimate);
  REQUIRE(diagnosis.ranks.size() == 2);
  CHECK(diagnosis.ranks[0].file == "rank1.json");
  CHECK(diagnosis.ranks[0].last == 1.0);
  CHECK(diagnosis.ranks[1].waits / Seconds(3e-3) == Approx(1.0));
  REQUIRE(diagnosis.collectives.size() == 1);
  // nccl-tests: an all-reduce moves 2 (n - 1) / n of its size.
  CHECK(*diagnosis.collectives[0].reached / BytesPerSecond(8e6 * 2.0 * 15.0 / 16.0 / 1e-3) == Approx(1.0));
  CHECK(*diagnosis.collectives[0].expected > *diagnosis.collectives[0].reached);
  // The GPU rests from 0 to 10 us, as the first launch ends at 5, and behind the last kernel: the host. On rank 1,
  // whose parts count, also from 1 to 4 ms, when the all-reduce is launched already.
  CHECK(diagnosis.parts.host_overhead / Seconds(5.01e-3) == Approx(1.0));
  CHECK(diagnosis.parts.pipeline_bubble / Seconds(3e-3) == Approx(1.0));
  CHECK(diagnosis.lag->value() == Approx(0.0).margin(1e-9));
}
