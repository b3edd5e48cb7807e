#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

/// Small enough that every plan is settled in a second.
constexpr const char* named_training = R"(name: small training
cluster: { node: dgx-a100-80gb, nodes: 1, price: 2 USD/GPU/hour }
workload:
  train:
    model: gpt2
    global_batch: 64
    micro_batch: 1
    samples: 1 billion tokens
)";

}  // namespace

TEST_CASE("The best plan is reported with the command that predicts it, alternatives with why they lose") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", named_training);
  const std::string result = output_of({"plan", file, "--fix", "context,offload,bucket", "--top", "20", "--command"});
  check_has(result, {"Plans for small training", "Best plan", "foretrain predict ", "--set 'plan.data=8'",
                     "Alternatives", "Pareto front"});
  CHECK(result.find("foretrain export") == std::string::npos);  // no framework is named
  check_has(output_of({"plan", file, "--fix", "context,offload,bucket,tensor,pipeline", "--top", "1", "--command",
                       "--set", "plan.framework=fsdp"}),
            {"foretrain export accelerate "});
  const FilterResult alone =
      run_program({"plan", file, "--fix", "context,offload,bucket", "--top", "20", "--command", "--jobs", "1"});
  CHECK(alone.output == result);
}

TEST_CASE("Plans as JSON and as a table of cases, which predict the same again") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", named_training), table = folder.file("plans.csv");
  const std::vector<std::string> command = {"plan",   file, "--fix", "context,offload,bucket", "--top", "5",
                                            "--json", "-o", table};
  const auto json = nlohmann::json::parse(output_of(command));
  CHECK(json["space"]["complete"] == true);
  CHECK(json["space"]["plans"] == json["space"]["settled"]);
  REQUIRE(json["plans"].size() == 5);
  CHECK(json["plans"][0]["why"] == "");
  CHECK(json["plans"][0]["step_time_s"] <= json["plans"][4]["step_time_s"]);
  std::vector<std::string> again = {"predict", file, "--json"};
  for (const std::string set : json["plans"][0]["set"]) {
    again.emplace_back("--set");
    again.push_back(set);
  }
  const auto predicted = nlohmann::json::parse(run_program(again).output);
  CHECK(predicted["step_time_s"] == json["plans"][0]["step_time_s"]);
  output_of({"sweep", "--cases", table, "-o", folder.file("again.csv")});
}

TEST_CASE("Hardware is searched too: the cheapest training within a time") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", named_training);
  const std::string result =
      output_of({"plan", file, "--fix", "context,offload,bucket,tensor,pipeline", "--top", "5", "--objective", "cost",
                 "--within", "10 days", "--nodes", "1..2", "--node", "dgx-a100-80gb@1.5,dgx-h100@3"});
  CHECK_THAT(result, Catch::Contains("Best plan per machine type and number of nodes, cheapest"));
  check_has(
      result,
      {"dgx-a100-80gb@1.5, 1 node:", "dgx-a100-80gb@1.5, 2 nodes:", "dgx-h100@3, 1 node:", "dgx-h100@3, 2 nodes:"});
}

TEST_CASE("A budget and a date: the plan within both, or the nearest and by how much it exceeds them") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", named_training);
  const auto plan = [&](const std::string& budget, const std::string& within) {
    return nlohmann::json::parse(
        output_of({"plan", file, "--fix", "context,offload,bucket,tensor,pipeline", "--top", "5", "--fidelity",
                   "estimate", "--nodes", "1,4", "--budget", budget, "--within", within, "--json"}));
  };
  // One machine takes some 13 minutes and 3.5 USD, four some 5 minutes and 5.2 USD.
  const auto roomy = plan("1k USD", "10 days"), cheap = plan("4 USD", "10 days"), none = plan("1 USD", "1 min");
  CHECK(roomy["plans"][0]["over_limits"] < 0.0);
  CHECK(roomy["plans"][0]["chance_within"] > 0.999);
  CHECK(cheap["plans"][0]["cost"] <= 4.0);
  CHECK(cheap["plans"][0]["time_to_train_s"] > roomy["plans"][0]["time_to_train_s"]);
  CHECK(cheap["machines"].size() == 2);
  CHECK(none["plans"][0]["over_limits"] > 1.0);
  for (const auto& other : none["plans"]) CHECK(other["over_limits"] >= none["plans"][0]["over_limits"]);
  CHECK(none["limits"]["usd"] == 1.0);
}

TEST_CASE("auto in a scenario asks the same search") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", named_training);
  CHECK_THAT(output_of({"predict", file, "--fidelity", "estimate", "--set", "plan.tensor=auto", "--set",
                        "workload.train.micro_batch=auto"}),
             Catch::Contains("Step time"));
}

TEST_CASE("explain, timeline and memory resolve auto as predict does, and print the same step") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", named_training);
  const std::vector<std::string> open = {"--set", "plan.tensor=auto", "--set", "workload.train.micro_batch=auto"};
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.end(), open.begin(), open.end());
    FilterResult result = run_program(words);
    INFO(result.errors);
    CHECK(result.status == 0);
    return result.output;
  };
  const std::string predicted = run({"predict", file, "--fidelity", "estimate"});
  const std::string explained = run({"explain", file, "--fidelity", "estimate"});
  CHECK_THAT(explained.substr(0, explained.find("Bottleneck")), Catch::Contains(step_time_in(predicted)));
  run({"timeline", file, "--fidelity", "estimate", "-o", folder.file("trace.json")});
  CHECK_THAT(run({"memory", file}), Catch::Contains("GB"));
}

TEST_CASE("The page on planning says what the program does") {
  std::ifstream file(FORETRAIN_SOURCE_DIR "/reports/docs/plan-a-cluster.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string help = words_of(run_program({"plan", "--help"}).output);
  CHECK_THAT(page, Catch::Contains("the best 200 with contention"));
  CHECK_THAT(help, Catch::Contains("(default: 200)"));
  for (const char* option : {"--fix", "--allow", "--headroom", "--objective", "--within", "--budget", "--nodes",
                             "--node", "--network", "--json", "-o"}) {
    CHECK_THAT(page, Catch::Contains(option));
    CHECK_THAT(help, Catch::Contains(option));
  }
  const std::size_t begin = page.find("```yaml\n") + 8;
  const TemporaryFolder folder;
  const std::string example = folder.file("example.yaml", page.substr(begin, page.find("```", begin) - begin));
  CHECK_THAT(output_of({"plan", example, "--fix", "context,offload,bucket", "--top", "3"}),
             Catch::Contains("Plans for small training"));
}

TEST_CASE("What a plan cannot be searched for is reported") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", named_training);
  const auto refused = [](const std::vector<std::string>& arguments, const char* why) {
    check_refused(arguments, {why});
  };
  refused({"plan", ring_of_four}, "nothing that is trained");
  refused({"plan", file, "--fix", "tensr"}, "plans differ in gpus_per_node, tensor");
  refused({"plan", file, "--objective", "fame"}, "write time, cost, energy or memory");
  refused({"plan", file, "--within", "10"}, "--within 10");
  refused({"plan", file, "--budget", "3 M"}, "no amount in USD");
  refused({"plan", file, "--budget", "3 M USD", "--set", "cluster.price=0 USD/GPU/hour"}, "--budget: no price");
  refused({"plan", file, "--objective", "cost", "--node", "dgx-z"}, "dgx-z");
}

TEST_CASE("What rules all machines out is reported once, what rules some out with their names") {
  const TemporaryFolder folder;
  const std::string file = folder.file("slow_card.yaml", R"(
cluster: { node: dgx1-v100, nodes: 2, faults: [ { node: 0, card: 3, bandwidth: 10 Gbit/s } ] }
workload: { train: { model: gpt2, global_batch: 64, precision: fp16 } }
)");
  const std::string why = file + ":2:66: cluster.faults[0].card: card 3 does not exist; 0 to 0\n";
  const auto planned_on = [&](const char* nodes) {
    return run_program({"plan", file, "--node", nodes, "--nodes", "2,4", "--fidelity", "estimate", "--fix",
                        "algorithm,bucket,overlap,order,schedule,interleave,offload,tensor,pipeline,context"});
  };
  const FilterResult none = planned_on("p2.16xlarge,p2.8xlarge");
  CHECK(none.status == 2);
  CHECK(none.output.empty());
  CHECK(none.errors == "foretrain: " + why);
  const FilterResult some = planned_on("p2.16xlarge,dgx1-v100");
  CHECK(some.status == 0);
  CHECK_THAT(some.output, Catch::Contains("dgx1-v100, 4 nodes"));
  CHECK_THAT(some.errors, Catch::StartsWith("foretrain: p2.16xlarge, 2 nodes; p2.16xlarge, 4 nodes: " + why));
}

}  // namespace foretrain::test
