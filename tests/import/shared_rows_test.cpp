// Measured rows without what tells whose they are.
#include "reports/export/shared_rows.hpp"

#include <filesystem>
#include <fstream>

#include "model/job/job.hpp"
#include "model/scenario/load/cases.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("a shared row has no names and paths, and predicts the same") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "alice-secret-cluster";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "base.yaml") << R"(name: alice at secret-host
description: /home/alice/runs
cluster: { node: machine.yaml, nodes: 2 }
workload: { train: { model: llama3-8b, global_batch: 64, micro_batch: 1 } }
plan: { framework: megatron, tensor: 2 }
)";
  std::ofstream(folder / "machine.yaml")
      << "kind: node\npreset: dgx-h100\nname: secret-host\nsources: { default: { kind: assumption, text: alice } }\n";
  const std::string table = "case,base,group,plan.zero,measured.step_time,source\nalice-1," +
                            (folder / "base.yaml").string() +
                            ",secret,1,2.5 s,\"Megatron-LM log alice: median of 48 steps (2 warm-up left out)\"\n";
  const SharedRows shared = shared_rows(table, "runs.csv");
  INFO(shared.table);
  for (const char* personal : {"alice", "secret", "/", ".yaml"}) {
    CHECK(shared.table.find(personal) == std::string::npos);
  }
  CHECK(shared.table.find("48 steps") != std::string::npos);
  CHECK(shared.rows == 1);
  CHECK(shared.removed.at("case names") == 1);
  const auto time = [](const std::string& text) {
    return estimate(scenario_of(read_cases_text(text, "t.csv").front())).time();
  };
  CHECK(time(shared.table) == time(table));
  CHECK(read_cases_text(shared.table, "t.csv").front().measured.front().value == 2.5);
  CHECK(shared_rows(shared.table, "again.csv").table == shared.table);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a row that cannot be read is refused at its place") {
  CHECK_THROWS_WITH(shared_rows("case,plan.tensr,measured.step_time\na,2,1 s\n", "runs.csv"),
                    Catch::Contains("runs.csv:2:"));
  CHECK_THROWS_WITH(shared_rows("case,cluster.node,measured.step_time\na,dgx-h100,fast\n", "runs.csv"),
                    Catch::Contains("runs.csv:2:12: measured.step_time"));
}
