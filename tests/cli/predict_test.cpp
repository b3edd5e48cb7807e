#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {
using nlohmann::json;

json predict_json(const std::vector<std::string>& arguments) {
  return json::parse(output_of(with({"predict", "--json"}, arguments)));
}
}  // namespace

TEST_CASE("A ring of four takes 15 ms at every fidelity") {
  for (const char* fidelity : {"estimate", "flows", "steps"}) {
    INFO(fidelity);
    const json result = predict_json({ring_of_four, "--fidelity", fidelity});
    CHECK(result["fidelity"] == fidelity);
    CHECK(result["time_s"].get<double>() == Approx(0.015).epsilon(0.01));
  }
  CHECK(predict_json({ring_of_four})["fidelity"] == "flows");
}

TEST_CASE("A training step has every agreed key, and its parts add up") {
  const TemporaryFolder folder;
  const json result = predict_json({folder.file("small.yaml", small_step)});
  for (const char* key :
       {"scenario", "fidelity", "step_time_s", "samples_per_second", "tokens_per_second", "tokens_per_second_per_gpu",
        "model_flops_per_second_per_gpu", "mfu", "breakdown_s", "communication_s", "memory_per_gpu_bytes", "bottleneck",
        "time_to_train_s", "cost", "uncertainty", "provenance", "warnings"}) {
    INFO(key);
    CHECK(result.contains(key));
  }
  double sum = 0.0;
  for (const auto& [part, time] : result["breakdown_s"].items()) sum += time.get<double>();
  CHECK(sum == Approx(result["step_time_s"].get<double>()));
  // 64 samples of 1,024 tokens.
  CHECK(result["samples_per_second"].get<double>() == Approx(64.0 / result["step_time_s"].get<double>()));
  CHECK(result["tokens_per_second"].get<double>() == Approx(1024.0 * result["samples_per_second"].get<double>()));
  CHECK_FALSE(result["provenance"].empty());
}

TEST_CASE("Two runs print identical bytes") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", small_step);
  for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--json"}, {"--verbose"}}) {
    std::vector<std::string> arguments = {"predict", file};
    arguments.insert(arguments.end(), options.begin(), options.end());
    CHECK(run_program(arguments).output == run_program(arguments).output);
  }
}

TEST_CASE("Several files give an array in their order") {
  const json results = predict_json({ring_of_four, "sync-through-cpu", "--jobs", "2"});
  REQUIRE(results.size() == 2);
  CHECK(results[0] == predict_json({ring_of_four}));
  CHECK(results[1] == predict_json({"sync-through-cpu"}));
}

TEST_CASE("A full disk is an error") {
  for (const char* arguments : {"predict sync-ring-4", "predict sync-ring-4 --json", "--help", "predict --help",
                                "--version", "complete -- pre", "scenarios list", "keys"}) {
    INFO(arguments);
    const FilterResult result =
        run_filter({"sh", "-c", std::string(FORETRAIN_PROGRAM) + " " + arguments + " > /dev/full"}, "");
    CHECK(result.status == 2);
    CHECK_THAT(result.errors, Catch::Contains("foretrain: cannot write the output: No space left on device"));
  }
}

TEST_CASE("--anchor makes predictions relative to measured runs") {
  const TemporaryFolder folder;
  // The run took 30 ms and is predicted to take 15 ms: everything takes twice as long.
  const std::string runs = folder.file("runs.csv", "case,base,measured.time\nmine,sync-ring-4,30 ms\n");
  const json plain = predict_json({"sync-through-cpu"});
  const json relative = predict_json({"sync-through-cpu", "--anchor", runs});
  CHECK(relative["time_s"].get<double>() == Approx(2.0 * plain["time_s"].get<double>()).epsilon(0.01));
  CHECK(relative["provenance"].back()["name"] == "anchor.factor");
  CHECK(relative["provenance"].back()["value"].get<double>() == Approx(2.0).epsilon(0.01));
}

TEST_CASE("A measured step of one process says how fast the machine computes its model, and nothing of the network") {
  const TemporaryFolder folder;
  const auto step = [](const json& result) { return result["step_time_s"].get<double>(); };
  const json alone = predict_json({"data-parallel-hosts", "--set", "cluster.nodes=1", "--set", "plan.data=1"});
  // Measured: twice as long as predicted. A second run is of another model and says nothing of LeNet.
  const std::string runs =
      folder.file("runs.csv",
                  "case,base,workload.train.model,cluster.nodes,plan.data,measured.step_time\n"
                  "mine,data-parallel-hosts,lenet,1,1," +
                      std::to_string(2.0 * step(alone)) + " s\nother,data-parallel-hosts,mlp-d2l,1,1,1 s\n");
  const json plain = predict_json({"data-parallel-hosts"});
  const json relative = predict_json({"data-parallel-hosts", "--anchor", runs});
  CHECK(relative["breakdown_s"]["exposed_communication"].get<double>() ==
        Approx(plain["breakdown_s"]["exposed_communication"].get<double>()).epsilon(0.05));
  CHECK(step(relative) - step(plain) == Approx(plain["breakdown_s"]["compute"].get<double>()).epsilon(0.1));
  CHECK(relative["provenance"].back()["name"] == "anchor.computing");
  CHECK(relative["uncertainty"]["high_s"].get<double>() / step(relative) <
        plain["uncertainty"]["high_s"].get<double>() / step(plain));
  CHECK_THAT(run_program({"predict", "data-parallel-hosts", "--anchor", runs}).output,
             Catch::Contains("Anchored      compute × 1.99") && Catch::Contains("1 step of"));
}

TEST_CASE("A plan that does not fit is reported, and with --strict the exit status says so, too") {
  output_of({"predict", "fit-memory-7b"});
  const FilterResult strict = run_program({"predict", "fit-memory-7b", "gpt2-xl-dgx-a100", "--strict"});
  CHECK(strict.status == 1);
  CHECK_THAT(strict.output, Catch::Contains(")\n\nDOES NOT FIT"));
  CHECK_THAT(strict.errors, Catch::Contains("does not fit into the memory of a GPU"));
  output_of({"predict", "gpt2-xl-dgx-a100", "--strict"});
}

TEST_CASE("predict says how connections find their uplinks, and that nobody said it") {
  const auto fabric_line = [](const std::string& more) {
    const std::string run =
        output_of({"predict", "gpt2-xl-dgx-a100", "--set", "cluster.network.nics_per_node=8", "--set",
                   "cluster.network.fabric={ kind: fat_tree, nodes_per_leaf: 1" + more + " }"});
    const std::size_t at = run.find("  Fabric ");
    return at == std::string::npos ? std::string() : run.substr(at, run.find('\n', at) - at);
  };
  CHECK_THAT(fabric_line(""), Catch::Contains("8 uplinks a leaf · routing perfect*"));
  CHECK_THAT(fabric_line(", uplinks: 4, routing: adaptive"), Catch::EndsWith("4 uplinks a leaf · routing adaptive"));
  CHECK(fabric_line(", uplinks: 1").empty());  // nothing to choose
}

TEST_CASE("An answer says what was predicted, and marks what the scenario does not say") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", small_step);
  check_has(output_of({"predict", file, "--fidelity", "estimate", "--set", "plan.tensor=2"}),
            {"1 x dgx-a100-80gb · 8 x a100-sxm-80gb", "global 64 · micro-batch 8", "data 4* · tensor 2 ·",
             "bf16 · adamw · recompute none*", "tuned defaults* (*: not in"});
  const FilterResult several =
      run_program({"predict", file, ring_of_four, "--fidelity", "estimate", "--set", "cluster.nodes=1"});
  CHECK_THAT(several.output, Catch::Contains("all_reduce of 160 MB · ranks 4* · algorithm ring") ||
                                 Catch::Contains("all_reduce of 160 MB · ranks 4 · algorithm ring"));
  CHECK_THAT(run_program({"predict", file, "--json", "--fidelity", "estimate", "--set", "plan.framework=ddp"}).output,
             Catch::Contains("\"settings\"") && Catch::Contains("\"value\": \"ddp\""));
}

TEST_CASE("The README shows what the program prints, of the scenario that it shows") {
  const std::string readme = text_of(FORETRAIN_SOURCE_DIR "/README.md");
  const std::string scenario = text_of(FORETRAIN_SOURCE_DIR "/scenarios/runs/gpt2-xl-dgx-a100.yaml");
  CHECK(readme.find("```yaml\n" + scenario + "```") != std::string::npos);
  const std::string command = "$ foretrain predict gpt2-xl-dgx-a100\n";
  const std::size_t begin = readme.find(command) + command.size();
  REQUIRE(begin != std::string::npos);
  CHECK(readme.substr(begin, readme.find("```", begin) - begin) == run_program({"predict", "gpt2-xl-dgx-a100"}).output);
}

TEST_CASE("A GPU's memory is reported with its peak, the largest micro-batch and remedies") {
  const FilterResult fits = run_program({"memory", "fit-fsdp-llama3-8b"});
  INFO(fits.errors);
  CHECK(fits.status == 0);
  check_has(fits.output, {"Peak at: head (loss) of micro-batch 1", "logits and loss",
                          "Largest micro-batch that fits: 2 (now 2)"});
  check_has(output_of({"memory", "fit-memory-7b"}), {"DOES NOT FIT", "No micro-batch size fits", "offload: optimizer"});
}

TEST_CASE("A GPU's memory as JSON has every moment") {
  check_has(output_of({"memory", "fit-zero-2", "--json"}),
            {"\"memory_per_gpu_bytes\"", "\"largest_micro_batch\"", "\"timeline\"", "\"phase\": \"loss\"",
             "\"micro_batches\": 1"});
}

TEST_CASE("A GPU's memory over the step is drawn, twice the same") {
  const TemporaryFolder folder;
  for (const char* picture : {"one.svg", "two.svg"}) {
    output_of({"plot", "memory-timeline", "fit-fsdp-llama3-8b", "-o", folder.file(picture)});
  }
  const auto text = [&](const char* picture) {
    std::ifstream file(folder.file(picture));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  CHECK_THAT(text("one.svg"), Catch::Contains("optimizer states"));
  CHECK_THAT(text("one.svg"), Catch::Contains("peak"));
  CHECK(text("one.svg") == text("two.svg"));
}

}  // namespace foretrain::test
