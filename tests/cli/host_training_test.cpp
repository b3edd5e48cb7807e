// validate/pytorch/host_steps.py: its own logic without PyTorch, and a few real steps where root and PyTorch are there.
#include <sstream>

#include "model/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

FilterResult run_host_steps(const std::vector<std::string>& arguments) {
  const std::string python = std::filesystem::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
  std::vector<std::string> command = {python, FORETRAIN_SOURCE_DIR "/validate/pytorch/host_steps.py"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_filter(command, "");
}

bool no_interpreter() {
  if (std::system("command -v python3 >/dev/null 2>&1") == 0) return false;
  WARN("no python3 here: the table of steps on hosts is not tested");
  return true;
}

/// The table that the script makes of runs as it leaves them (data/NAME.json, whose numbers are made up: the test is
/// about names, units and the table's form), and what validate says of it: each case is predicted.
std::pair<std::string, std::string> tabulated(const std::string& name, const std::string& table,
                                              const std::vector<std::string>& more = {}) {
  const TemporaryFolder folder;
  const std::string runs = folder.file("runs.json", read_text_file(FORETRAIN_SOURCE_DIR "/tests/cli/data/" + name));
  const FilterResult written = run_host_steps(with({"-o", runs, "--table", table, "--table-only"}, more));
  INFO(written.errors);
  REQUIRE(written.status == 0);
  const std::string validated = output_of({"validate", "--cases", table, "--json"});
  CHECK_THAT(validated, Catch::Contains(R"("failed": [])"));
  return {read_text_file(table), validated};
}

/// Names of the cases that host_steps.py would measure, sorted; each is there once.
std::vector<std::string> listed_names(std::vector<std::string> arguments) {
  arguments.emplace_back("--list");
  const FilterResult all = run_host_steps(arguments);
  REQUIRE(all.status == 0);
  std::istringstream in(all.output);
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);) names.push_back(line);
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  return names;
}

}  // namespace

TEST_CASE("Every designed run on hosts has a name of its own, of all models, servers and rings") {
  if (no_interpreter()) return;
  const std::vector<std::string> names = listed_names({});
  CHECK(names.size() >= 150);
  for (const char* name : {"mlp-d2l-b256-alone", "lenet-b128-ring2-100", "resnet-18-b8-server1-2000",
                           "gpt-small-b4-ring4-1000-slow300-half", "bert-small-b4-async3-500-half"}) {
    CHECK(std::binary_search(names.begin(), names.end(), std::string(name)));
  }
}

TEST_CASE("What was measured on hosts becomes a table that validate takes") {
  if (no_interpreter()) return;
  const TemporaryFolder folder;
  const std::string table = folder.file("cases.csv"), picture = folder.file("steps.svg");
  const auto [text, validated] = tabulated("host_steps.json", table);
  CHECK_THAT(text, Catch::Contains("250.0000 ms"));
  // Memory is a row of its own.
  check_has(validated, {"hosts-two", "hosts-three-memory", "hosts-five"});
  const std::vector<std::string> plot = {"plot",    "cases",        table, "--x",  "plan.data",
                                         "--panel", "replay.model", "-o",  picture};
  output_of(with(plot, {"--curve", "workload.train.micro_batch"}));
  CHECK_THAT(read_text_file(picture), Catch::Contains("gpt-small") && Catch::Contains("micro batch "));
  CHECK(run_program(with(plot, {"--where", "replay.way=none"})).status == 2);
}

TEST_CASE("A model is divided over hosts in more than 200 ways, each with a name of its own that becomes a scenario") {
  if (no_interpreter()) return;
  CHECK(listed_names({"--parallel"}).size() >= 300);
  const TemporaryFolder folder;
  const auto [text, validated] = tabulated("host_parallel.json", folder.file("cases.csv"));
  CHECK_THAT(text, Catch::Contains("150.0000 ms"));  // of 250, the thread worked 100
  CHECK_THAT(validated, Catch::Contains("hosts-six"));
}

TEST_CASE("Vision–language models are trained on hosts whole and in part, and become a table that validate takes") {
  if (no_interpreter()) return;
  CHECK(listed_names({"--vision"}).size() >= 30);
  const TemporaryFolder folder;
  const auto [text, validated] = tabulated("host_vision.json", folder.file("cases.csv"), {"--vision"});
  check_has(text, {"{ images: 4, text: 64 }", "\"[vision, language]\"", "\"{ rank: 8, targets: [attention, ffn] }\""});
  CHECK_THAT(validated, Catch::Contains("hosts-vision") && Catch::Contains("hosts-one-memory"));
}

TEST_CASE("Whole trainings on hosts become a table whose lengths validate compares") {
  if (no_interpreter()) return;
  const TemporaryFolder folder;
  const std::string operators =
      folder.file("operators.json",
                  R"({"points": [{"name": "probe: product", "figure": "probe", "median_s": 0.003},
      {"name": "probe: convolution", "figure": "probe", "median_s": 0.006}]})");
  const auto [text, validated] =
      tabulated("host_lifetimes.json", folder.file("cases.csv"), {"--lifetime", "--operators", operators});
  CHECK_THAT(text, Catch::Contains("software: 0.008333 h") && Catch::Contains("link_bandwidth: 23.91 MB/s"));
  CHECK_THAT(validated, Catch::Contains(R"("quantity": "time_to_train")"));
}

TEST_CASE("Tensor ranks and exchanged experts run between hosts, and take about as long as predicted") {
  if (no_interpreter()) return;
  const std::string ask = "/usr/bin/python3 -c 'import torch, sys; sys.exit(torch.__version__ < \"2.5\")' 2>/dev/null";
  if (std::system(ask.c_str()) != 0) {
    WARN("no model is divided over hosts here: that needs PyTorch 2.5 or newer (Debian 13: python3-torch)");
    return;
  }
  const TemporaryFolder folder;
  const std::string table = folder.file("cases.csv");
  const FilterResult measured =
      run_host_steps({"--parallel", "-o", folder.file("runs.json"), "--only",
                      "llama-tall-b2-tensor2-1000,moe-b4-data2-expert2-1000", "--table", table, "--minutes", "0.5"});
  if (measured.status == 2) {
    WARN("no steps on hosts are measured: " << measured.errors);
    return;
  }
  output_of({"validate", "--cases", table, "--bar", "hosts-tensor=60", "--bar", "hosts-experts=60"});
}

TEST_CASE("An all-reduce on processors takes its own time and that of its sums beside its bytes") {
  const auto step_of = [](const std::vector<std::string>& figures) {
    std::vector<std::string> command = {"predict", "data-parallel-hosts", "--json"};
    for (const std::string& figure : figures) {
      command.insert(command.end(), {"--set", "cluster.node.gpu.processor." + figure});
    }
    const std::string output = run_program(command).output, key = "\"step_time_s\": ";
    return std::stod(output.substr(output.find(key) + key.size()));
  };
  // LeNet's gradients are one bucket, summed after the backward pass. 2 ms more are that much; its 129,068 numbers,
  // 0.516 MB, are sent once by each of two hosts, and take 0.516 ms more at 0.5 GB/s than at 1 GB/s.
  const double usual = step_of({"all_reduce=1 ms", "sum_rate=1 GB/s"});
  CHECK(step_of({"all_reduce=3 ms", "sum_rate=1 GB/s"}) - usual == Approx(2e-3));
  CHECK(step_of({"all_reduce=1 ms", "sum_rate=0.5 GB/s"}) - usual == Approx(0.516e-3).epsilon(0.02));
  // Half a core is not held up: it waits for the card for most of the time.
  CHECK(step_of({"all_reduce=1 ms", "sum_rate=0.5 GB/s", "share=0.5"}) -
            step_of({"all_reduce=1 ms", "sum_rate=1 GB/s", "share=0.5"}) ==
        Approx(0.516e-3).epsilon(0.02));
}

TEST_CASE("Runs on hosts that cannot be are refused") {
  if (no_interpreter()) return;
  const TemporaryFolder folder;
  CHECK(run_host_steps({"--list", "--only", "lenot"}).status == 2);
  CHECK(run_host_steps({}).status == 2);
  CHECK(run_host_steps({"-o", folder.file("none.json"), "--table", folder.file("t.csv"), "--table-only"}).status == 1);
}

TEST_CASE("Real steps by a ring and by a server are measured, kept, and take about as long as predicted") {
  if (no_interpreter()) return;
  const TemporaryFolder folder;
  const std::string table = folder.file("cases.csv");
  const FilterResult measured = run_host_steps({"-o", folder.file("runs.json"), "--only",
                                                "mlp-d2l-b256-ring2-100-half,mlp-d2l-b256-server2-100-half", "--table",
                                                table, "--minutes", "0.5"});
  if (measured.status == 2) {
    WARN("no steps on hosts are measured: " << measured.errors);
    return;
  }
  CHECK_THAT(measured.output, Catch::Contains("mlp-d2l-b256-ring2-100-half "));
  CHECK_THAT(read_text_file(folder.file("runs.json")), Catch::Contains("\"median_s\": 0."));
  // 0.66 MB of gradients: by the ring 53 ms at 100 Mbit/s, through the server four times as much. What others on the
  // machine take is said, not judged; but no step can be shorter than its bytes, and half as long again is no step of
  // ours.
  output_of({"validate", "--cases", table, "--bar", "hosts-ring=50", "--bar", "hosts-server=50"});
}

}  // namespace foretrain::test
