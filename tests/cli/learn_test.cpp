#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

const std::string header =
    "case,cluster.node,cluster.nodes,workload.train.model,workload.train.global_batch,workload.train.micro_batch,"
    "measured.tokens_per_second_per_gpu\n";

/// Steps of GPT-2, each slower than a tuned one by some factor.
std::string runs(int count) {
  std::string text = header;
  for (int i = 0; i < count; ++i) {
    const int micro_batch = i % 2 == 0 ? 1 : 4;
    text += fmt::format("run-{},dgx-a100-80gb,{},gpt2,{},{},{}\n", i, 1 + i % 2, 64 * micro_batch, micro_batch,
                        4000 + 100 * i);
  }
  return text;
}

}  // namespace

TEST_CASE("learn writes a stack, names rows that it cannot use, and other commands predict with it") {
  const TemporaryFolder folder;
  const std::string stack = folder.file("stack.yaml");
  // The last row measures half the rate of the first, of the same run.
  const std::string table = folder.file(
      "runs.csv", runs(8) + "bad,dgx-a100-80gb,1,gpt-2000,64,1,5000\n" + "again,dgx-a100-80gb,1,gpt2,64,1,2000\n");
  const FilterResult learned = run_program({"learn", table, "-o", stack});
  INFO(learned.errors);
  CHECK(learned.status == 0);
  CHECK_THAT(learned.output, Catch::Contains("Learned from 8 runs") && Catch::Contains("5-fold cross-validation"));
  check_has(learned.errors, {"bad is left out", "runs.csv:10:", "again is left out",
                             "runs.csv:11:", "2 times what run-0 measures of the same run"});
  const FilterResult usual = run_program({"predict", "gpt2-xl-dgx-a100", "--json"});
  const std::string slow = output_of({"predict", "gpt2-xl-dgx-a100", "--stack", stack, "--json"});
  CHECK_THAT(slow, Catch::Contains("learned from runs.csv") || Catch::Contains("runs, 1 σ range"));
  CHECK(slow != usual.output);
  const std::string good = folder.file("good.csv", runs(8));
  output_of({"validate", "--cases", good, "--stack", stack, "--fidelity", "estimate"});
}

TEST_CASE("a log's run is the scenario beside it, else that of its head, else --scenario") {
  const std::string log = text_of(FORETRAIN_SOURCE_DIR "/tests/import/data/log_megatron.txt");
  const std::string steps = log.substr(log.find(" iteration "));
  const TemporaryFolder folder;
  const std::string with_head = folder.file("head.log", log), without = folder.file("bare.log", steps);
  const auto reported = [](const std::string& file, const char* scenario) {
    return run_program({"learn", file, "--json", "--scenario", scenario}).errors;
  };
  const std::string used = "1 usable training run; at least 5";
  check_has(reported(with_head, "no-such-run"), {used});
  check_has(reported(without, "no-such-run"), {"bare.log is left out", "no-such-run"});
  check_has(reported(without, "gpt2-xl-dgx-a100"), {used});
  check_has(run_program({"learn", without, "--json"}).errors, {"no arguments at the log's head"});
  (void)folder.file("head.yaml", "workload: { train: { model: gpt2 } }\n");
  check_has(reported(with_head, "gpt2-xl-dgx-a100"), {"head.log is left out", "cluster: this key is missing"});
}

TEST_CASE("learn warns of runs that no profile of their machine explains") {
  std::string text = header;  // alike but for their nodes, and a hundred times as fast in turns
  for (int i = 0; i < 8; ++i) {
    text += fmt::format("run-{},dgx-a100-80gb,{},gpt2,{},1,{}\n", i, i + 1, 64 * (i + 1), i % 2 == 0 ? 40 : 40000);
  }
  const TemporaryFolder folder;
  check_has(run_program({"learn", folder.file("runs.csv", text), "--json"}).errors, {"the profile is of no use"});
}

TEST_CASE("learn --json says of every run how far off it is, what was left out and why, and holds the stack's file") {
  const TemporaryFolder folder;
  const std::string stack = folder.file("stack.yaml");
  const std::string table = folder.file("runs.csv", runs(8) + "bad,dgx-a100-80gb,1,gpt-2000,64,1,5000\n");
  const std::string learned = output_of({"learn", table, "--json", "-o", stack});
  const nlohmann::json json = nlohmann::json::parse(learned);
  CHECK(json["stack"] == text_of(stack));
  CHECK(run_program({"learn", table, "--json"}).output == learned);  // -o is not needed
  REQUIRE(json["cases"].size() == 8);
  CHECK(json["failed"].size() == 1);
  CHECK_THAT(json["failed"][0]["why"].get<std::string>(), Catch::Contains("runs.csv:10:"));
  // The mean of what the runs are off, whatever the direction, is the mean that the summary states.
  const auto mean = [&](const char* key) {
    double sum = 0.0;
    for (const auto& one : json["cases"]) sum += std::abs(one[key].get<double>());
    return sum / 8.0;
  };
  CHECK(mean("error_assumed") == Approx(json["errors"]["assumed"]["mean"].get<double>()));
  CHECK(mean("error") == Approx(json["errors"]["fitted"]["mean"].get<double>()));
  CHECK(mean("error_left_out") == Approx(json["errors"]["left_out"]["mean"].get<double>()));
  for (const auto& one : json["parameters"]) CHECK(one["low"] <= one["high"]);
}

TEST_CASE("learn takes a folder of logs, each with its scenario beside it, as the table of their rows") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("logs"));
  std::string table = "case,base,measured.step_time\n";
  for (int i = 1; i <= 5; ++i) {
    const std::string name = fmt::format("run{}", i);
    const std::string scenario =
        folder.file("logs/" + name + ".yaml",
                    fmt::format("cluster: {{ node: dgx-a100-80gb, nodes: 1 }}\nworkload: {{ train: {{ model: gpt2, "
                                "global_batch: {}, micro_batch: 4 }} }}\n",
                                32 * i));
    std::ignore = folder.file("logs/" + name + ".log",
                              fmt::format("iteration 5/ 9 | elapsed time per iteration (ms): {} |\n", 300 * i));
    table += fmt::format("{},{},{:.1f} s\n", name, scenario, 0.3 * i);
  }
  std::ignore = folder.file("logs/notes.txt", "nothing of a step\n");
  const nlohmann::json of_logs = nlohmann::json::parse(output_of({"learn", folder.file("logs"), "--json"}));
  const nlohmann::json of_table = nlohmann::json::parse(output_of({"learn", folder.file("runs.csv", table), "--json"}));
  CHECK(of_logs["cases"] == of_table["cases"]);
  REQUIRE(of_logs["failed"].size() == 1);
  CHECK_THAT(of_logs["failed"][0]["why"].get<std::string>(), Catch::Contains("no line has a step time"));
}

TEST_CASE("learn wants five runs, a base that there is, and an output") {
  const TemporaryFolder folder;
  const std::string few = folder.file("few.csv", runs(4));
  check_refused({"learn", few, "-o", folder.file("s.yaml")}, {"at least 5"});
  CHECK(run_program({"learn", few}).status == 2);
  const std::string enough = folder.file("runs.csv", runs(6));
  check_refused({"learn", enough, "--base", "nobody", "-o", folder.file("s.yaml")},
                {"at least 5 are needed; run-0 is left out: ", "nobody"});
}

TEST_CASE("plan counts that memory may not do, as far as a stack's runs say that it is predicted too low") {
  // Runs of one plan whose memory was measured 6 to 76 GB, whatever is predicted of it: nine of ten need no more than a
  // multiple of that, and any plan may be short of it.
  const TemporaryFolder folder;
  std::string text = "measured.memory_per_gpu," + header;
  for (int i = 0; i < 8; ++i) {
    text += fmt::format("{} GB,run-{},dgx-a100-80gb,1,gpt2,{},{},{}\n", 6 + 10 * i, i, 64 * (1 + i), 1 + i, 4000);
  }
  const std::string table = folder.file("runs.csv", text), stack = folder.file("stack.yaml");
  output_of({"learn", table, "-o", stack});
  const std::string scenario = folder.file("next.yaml",
                                           "name: next\ncluster: { node: dgx-a100-80gb }\nworkload: { train: { model: "
                                           "gpt2, global_batch: 64 } }\n");
  const std::vector<std::string> ask = {
      "plan", scenario, "--fidelity", "estimate", "--json", "--fix", "schedule,offload,bucket,context,tensor,pipeline"};
  CHECK_THAT(run_program(ask).output, !Catch::Contains("chance_of_shortage"));
  CHECK_THAT(output_of(with(ask, {"--stack", stack})), Catch::Contains("chance_of_shortage"));
}

TEST_CASE("learn --next names the runs that a choice of plans needs most, within a budget") {
  const TemporaryFolder folder;
  const std::string table = folder.file("runs.csv", runs(8)), stack = folder.file("stack.yaml");
  output_of({"learn", table, "-o", stack});
  const std::string scenario = folder.file("next.yaml",
                                           "name: next\ncluster: { node: dgx-a100-80gb, nodes: 2 }\nworkload: { train: "
                                           "{ model: gpt2, global_batch: 64 } }\n");
  const std::vector<std::string> ask = {"learn", "--next", stack, scenario, "--fix", "schedule,offload,bucket,context"};
  check_has(output_of(ask), {"1. ", "GPU-hours", "--stack"});
  const nlohmann::json cheap =
      nlohmann::json::parse(run_program(with(ask, {"--budget", "1 GPU-hours", "--json"})).output);
  double spent = 0.0, regret = cheap["regret"];
  CHECK(cheap["choices"] > 1);
  for (const auto& run : cheap["runs"]) {
    spent += run["gpu_hours"].get<double>();
    CHECK(run["regret"] < regret);
    // Eight GPUs a machine, for five minutes and fifty steps.
    const double gpus = 8.0 * run["nodes"].get<double>(), seconds = 300.0 + 50.0 * run["step_time_s"].get<double>();
    CHECK(run["gpu_hours"].get<double>() == Approx(gpus * seconds / 3600.0));
    regret = run["regret"];
  }
  CHECK(spent <= 1.0);
  CHECK_THAT(output_of({"learn", "--next", stack, table}), Catch::Contains("a row of") || Catch::Contains("No run"));
}

TEST_CASE("learn --next refuses what is no learned stack, a budget that is none, and nothing to choose from") {
  const TemporaryFolder folder;
  const std::string table = folder.file("runs.csv", runs(6)), stack = folder.file("stack.yaml");
  output_of({"learn", table, "-o", stack});
  check_refused({"learn", "--next", "nanotron", table}, {"nanotron"});
  check_refused({"learn", "--next", stack, table, "--budget", "64 EUR"}, {"64 GPU-hours"});
  CHECK_THAT(run_program({"learn", "--next", stack, folder.file("one.csv", runs(1))}).errors,
             Catch::Contains("two are needed"));
  CHECK(run_program({"learn", "--next", stack, table, "-o", folder.file("x.yaml")}).status == 2);
  CHECK_THAT(run_program({"learn", "--next", stack, table, "--set", "cluster.nodes=2"}).errors,
             Catch::Contains("of a scenario"));
}

}  // namespace foretrain::test
