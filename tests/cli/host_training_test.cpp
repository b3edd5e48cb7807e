// validate/pytorch/host_steps.py: its own logic without PyTorch, and a few real steps where root and PyTorch are there.
#include <algorithm>
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

/// A run as the script leaves it. The numbers are made up; the test is about names, units and the table's form.
std::string run_of(const std::string& name, const std::string& kind, const std::string& rest) {
  return R"({"name": ")" + name + R"(", "kind": ")" + kind +
         R"(", "model": "gpt-small", "batch": 4, "rate": 500, "values": [0.2, 0.4], "median_s": 0.25, )"
         R"("spread": 0.01, "cores_busy": 0.5, "others": 0.0, )" +
         rest + "}";
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
  write_file(folder.file("runs.json"),
             R"({"kind": "host training", "machine": {"torch": "1.13", "processor": "a processor", "cores": 2, )"
             R"("kernel": "6", "date": "2026-01-01"}, "runs": [)" +
                 run_of("one", "ring", R"("workers": 2, "share": 1.0, "slow": null)") + "," +
                 run_of("two", "async", R"("workers": 3, "share": 0.5, "slow": 300, "staleness_mean": 2.0)") + "," +
                 run_of("three", "server",
                        R"("workers": 2, "servers": 2, "share": 1.0, "peak_bytes": 300000000, "exposed_s": 0.1)") +
                 "," + run_of("four", "bounded", R"("workers": 3, "bound": 1, "share": 0.5, "slow_core": 2)") + "," +
                 run_of("five", "ring",
                        R"("workers": 4, "share": 0.5, "hook": "fp16", "accumulate": 2, "slow_core": 2, )"
                        R"("background": [0, 1], "checkpoint": true)") +
                 "]}");
  const std::string table = folder.file("cases.csv");
  REQUIRE(run_host_steps({"-o", folder.file("runs.json"), "--table", table, "--table-only"}).status == 0);
  CHECK_THAT(read_text_file(table), Catch::Contains("250.0000 ms"));
  const FilterResult validated = run_program({"validate", "--cases", table, "--json"});
  CHECK(validated.status == 0);
  CHECK_THAT(validated.output, Catch::Contains("hosts-two") && Catch::Contains(R"("failed": [])"));
  // Memory is a row of its own.
  CHECK_THAT(validated.output, Catch::Contains("hosts-three-memory") && Catch::Contains("hosts-five"));
  const std::string picture = folder.file("steps.svg");
  const FilterResult drawn = run_program({"plot", "cases", table, "--x", "plan.data", "--panel", "replay.model",
                                          "--curve", "workload.train.micro_batch", "-o", picture});
  INFO(drawn.errors);
  CHECK(drawn.status == 0);
  CHECK_THAT(read_text_file(picture), Catch::Contains("gpt-small") && Catch::Contains("micro batch "));
  CHECK(run_program({"plot", "cases", table, "--x", "plan.data", "--panel", "replay.model", "--where",
                     "replay.way=none", "-o", picture})
            .status == 2);
}

TEST_CASE("A model is divided over hosts in more than 200 ways, each with a name of its own that becomes a scenario") {
  if (no_interpreter()) return;
  CHECK(listed_names({"--parallel"}).size() >= 300);

  const TemporaryFolder folder;
  const std::string of_two = R"("thread_s": 0.1, "share": 1.0, "workers": 2, )";
  const auto run = [](const std::string& name, const std::string& kind, const std::string& rest) {
    return R"({"name": ")" + name + R"(", "kind": ")" + kind +
           R"(", "model": "llama-tall", "batch": 2, "rate": 1000, "values": [0.2], "median_s": 0.25, )"
           R"("spread": 0.01, "cores_busy": 0.5, "others": 0.0, )" +
           rest + "}";
  };
  write_file(
      folder.file("runs.json"),
      R"({"kind": "host training", "machine": {"torch": "2.6", "processor": "a processor", "cores": 2, )"
      R"("kernel": "6", "date": "2026-01-01"}, "runs": [)" +
          run("one", "tensor", of_two + R"("tensor": 2, "sequence": true, "checkpoint": true)") + "," +
          run("two", "pipeline",
              of_two + R"("pipeline": 2, "interleave": 2, "schedule": "zero_bubble", "micro_batches": 4)") +
          "," +
          run("three", "sharded",
              R"("thread_s": 0.1, "share": 0.5, "workers": 4, "data": 4, "sharding": "hybrid", "shard": 2, "uplink": 200)") +
          "," + run("four", "optimizer", of_two + R"("data": 2, "sharding": "optimizer", "slow": 300)") + "," +
          run("five", "context", of_two + R"("context": 2, "slow_core": 2)") + "," +
          run("six", "pipeline",
              R"("thread_s": 0.1, "share": 0.5, "workers": 4, "data": 2, "pipeline": 2, "schedule": "1f1b", )"
              R"("micro_batches": 4, "stage_layers": [5, 3], "background": [0, 3])") +
          "]}");
  const std::string table = folder.file("cases.csv");
  REQUIRE(run_host_steps({"-o", folder.file("runs.json"), "--table", table, "--table-only"}).status == 0);
  CHECK_THAT(read_text_file(table), Catch::Contains("150.0000 ms"));  // of 250, the thread worked 100
  const FilterResult validated = run_program({"validate", "--cases", table, "--json"});
  INFO(validated.errors);
  CHECK(validated.status == 0);
  CHECK_THAT(validated.output, Catch::Contains("hosts-six") && Catch::Contains(R"("failed": [])"));
}

TEST_CASE("Vision–language models are trained on hosts whole and in part, and become a table that validate takes") {
  if (no_interpreter()) return;
  CHECK(listed_names({"--vision"}).size() >= 30);

  const TemporaryFolder folder;
  const auto run = [](const std::string& name, const std::string& rest) {
    return R"({"name": ")" + name +
           R"(", "kind": "vision", "model": "llava-small", "batch": 2, "rate": 1000, "values": [0.2], )"
           R"("median_s": 0.25, "spread": 0.01, "cores_busy": 0.5, "others": 0.0, )" +
           rest + "}";
  };
  write_file(folder.file("runs.json"),
             R"({"kind": "host training", "machine": {"torch": "2.6", "processor": "a processor", "cores": 2, )"
             R"("kernel": "6", "date": "2026-01-01"}, "runs": [)" +
                 run("one", R"("workers": 1, "share": 1.0, "images": 4, "peak_bytes": 500000000)") + "," +
                 run("two", R"("workers": 2, "share": 1.0, "freeze": ["vision"], "lora": 8, "exposed_s": 0.1)") + "," +
                 run("three", R"("workers": 4, "share": 0.5, "freeze": ["vision", "language"], "accumulate": 2)") +
                 "]}");
  const std::string table = folder.file("cases.csv");
  REQUIRE(run_host_steps({"--vision", "-o", folder.file("runs.json"), "--table", table, "--table-only"}).status == 0);
  CHECK_THAT(read_text_file(table), Catch::Contains("{ images: 4, text: 64 }") &&
                                        Catch::Contains("\"[vision, language]\"") &&
                                        Catch::Contains("\"{ rank: 8, targets: [attention, ffn] }\""));
  const FilterResult validated = run_program({"validate", "--cases", table, "--json"});
  INFO(validated.errors);
  CHECK(validated.status == 0);
  CHECK_THAT(validated.output, Catch::Contains("hosts-vision") && Catch::Contains("hosts-one-memory") &&
                                   Catch::Contains(R"("failed": [])"));
}

TEST_CASE("Whole trainings on hosts become a table whose lengths validate compares") {
  if (no_interpreter()) return;
  const TemporaryFolder folder;
  const auto run = [](const std::string& name, const std::string& rest) {
    return R"({"name": ")" + name +
           R"(", "kind": "lifetime", "model": "llama-tall", "batch": 2, "rate": 1000, )"
           R"("share": 1.0, "workers": 2, "data": 2, "steps": 24, "heartbeat": 0.5, "start_s": 5.0, )"
           R"("initialise_s": 0.4, "length_s": 30.0, "done_again": 0, "cores_busy": 1.5, )"
           R"("probes": [{"product": 3.0, "convolution": 6.0, "relu": 0.2}], )" +
           rest + "}";
  };
  write_file(folder.file("operators.json"),
             R"({"points": [{"name": "probe: product", "figure": "probe", "median_s": 0.003},
      {"name": "probe: convolution", "figure": "probe", "median_s": 0.006}]})");
  write_file(folder.file("runs.json"),
             R"({"kind": "host lifetimes", "machine": {"torch": "2.6", "processor": "a processor", "cores": 2, )"
             R"("kernel": "6", "date": "2026-01-01"}, "runs": [)" +
                 run("plain", R"("every": 0, "between": 0, "deaths": 0)") + "," +
                 run("saved", R"("every": 4, "mode": "asynchronous", "storage": 200, "between": 0, "deaths": 0)") +
                 "," + run("died", R"("every": 4, "mode": "synchronous", "storage": 500, "between": 15, "deaths": 2)") +
                 "]}");
  const std::string table = folder.file("cases.csv");
  const FilterResult written = run_host_steps({"--lifetime", "-o", folder.file("runs.json"), "--operators",
                                               folder.file("operators.json"), "--table", table, "--table-only"});
  INFO(written.errors);
  REQUIRE(written.status == 0);
  CHECK_THAT(read_text_file(table),
             Catch::Contains("software: 0.008333 h") && Catch::Contains("link_bandwidth: 23.91 MB/s"));
  const FilterResult validated = run_program({"validate", "--cases", table, "--json"});
  CHECK(validated.status == 0);
  CHECK_THAT(validated.output, Catch::Contains(R"("quantity": "time_to_train")") && Catch::Contains(R"("failed": [])"));
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
  const FilterResult validated =
      run_program({"validate", "--cases", table, "--bar", "hosts-tensor=60", "--bar", "hosts-experts=60"});
  INFO(validated.output);
  CHECK(validated.status == 0);
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
  const FilterResult validated =
      run_program({"validate", "--cases", table, "--bar", "hosts-ring=50", "--bar", "hosts-server=50"});
  INFO(validated.output);
  CHECK(validated.status == 0);
}

}  // namespace foretrain::test
