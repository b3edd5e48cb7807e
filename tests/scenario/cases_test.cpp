#include "model/scenario/load/cases.hpp"
#include "model/scenario/catalogue.hpp"

#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

std::string complaint(const std::string& csv) {
  return test::complaint_of([&] {
    for (const Case& row : read_cases_text(csv, "t.csv")) scenario_of(row);
  });
}

constexpr const char* header = "case,group,cluster.node,workload.train.model,plan.tensor,measured.step_time,source\n";

}  // namespace

TEST_CASE("A row is a scenario, its measurement and its source") {
  const auto cases = read_cases_text(std::string(header) +
                                         "a,g,dgx-a100-80gb,gpt2,2,3.5 s,\"paper, table 1\"\n"
                                         "a,g,dgx-a100-80gb,gpt2,,70 ms,\n",
                                     "t.csv");
  REQUIRE(cases.size() == 2);  // names may repeat
  CHECK(cases[0].name == "a");
  CHECK(cases[0].group == "g");
  CHECK(cases[0].source == "paper, table 1");
  REQUIRE(cases[0].measured.size() == 1);
  CHECK(cases[0].measured[0].quantity == MeasuredQuantity::step_time);
  CHECK(cases[0].measured[0].value == 3.5);
  CHECK(cases[1].measured[0].value == Approx(0.07));
  CHECK(scenario_of(cases[0]).plan.tensor == 2);
  CHECK(scenario_of(cases[0]).plan.data == 4);
  CHECK(scenario_of(cases[1]).plan.tensor == 1);  // an empty cell overrides nothing
  CHECK(scenario_of(cases[1]).name == "a");
}

TEST_CASE("A table that comes with the program is read by its name") {
  const std::vector<Case> by_name = read_cases("cases_d2l_pytorch");
  REQUIRE(by_name.size() == read_cases(data_directory() / "cases/cases_d2l_pytorch.csv").size());
  CHECK(by_name.front().name == read_cases("cases_d2l_pytorch.csv").front().name);
  CHECK_THROWS_WITH(read_cases("cases_of_nobody"), Catch::Contains("cannot read"));
}

TEST_CASE("A row without a name is called by its number") {
  const auto cases = read_cases_text(
      std::string(header) + ",g,dgx-a100-80gb,gpt2,2,1 s,x\nb,g,t4-x1,gpt2,1,1 s,x\n,g,t4-x1,gpt2,1,1 s,x\n", "t.csv");
  REQUIRE(cases.size() == 3);
  CHECK(cases[0].name == "row 1");
  CHECK(cases[1].name == "b");
  CHECK(cases[2].name == "row 3");
}

TEST_CASE("Each row with a base that nobody knows says so at its own cell") {
  const auto cases = read_cases_text("base,measured.step_time\nnosuch,1 s\nnosuch,2 s\n", "t.csv");
  CHECK_THROWS_WITH(document_of(cases[0]), Catch::StartsWith("t.csv:2:1: base: unknown scenario \"nosuch\""));
  CHECK_THROWS_WITH(document_of(cases[1]), Catch::StartsWith("t.csv:3:1: base: unknown scenario \"nosuch\""));
}

TEST_CASE("A case may start from a scenario file, relative to the table") {
  const TemporaryFolder folder;
  folder.write("base.yaml",
               "name: base\ncluster: { node: dgx-a100-80gb }\nworkload: { train: { model: gpt2, micro_batch: 4 } }\n");
  const auto path =
      folder.write("t.csv", "case,base,workload.train.model.sequence,predicted.step_time\nx,base.yaml,512,1 s\n");
  const auto cases = read_cases(path);
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].measured.empty());  // predicted columns are a sweep's results
  const Scenario scenario = scenario_of(cases[0]);
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  CHECK(train.micro_batch == 4);
  CHECK(std::get<TransformerConfig>(train.model.shape).sequence == 512);
}

TEST_CASE("Every kind of measurement") {
  const auto cases = read_cases_text(
      "case,measured.samples_per_second,measured.tokens_per_second,measured.time,measured.bus_bandwidth,"
      "measured.memory_per_gpu,measured.tokens_per_second_per_gpu\nx,142,1e5,3 us,230 GB/s,40 GiB,12500\n",
      "t.csv");
  REQUIRE(cases[0].measured.size() == 6);
  CHECK(cases[0].measured[0].value == 142.0);
  CHECK(cases[0].measured[1].value == 1e5);
  CHECK(cases[0].measured[2].value == Approx(3e-6));
  CHECK(cases[0].measured[3].value == 230e9);
  CHECK(cases[0].measured[4].value == 40.0 * 1073741824.0);
  CHECK(cases[0].measured[5].value == 12500.0);
  CHECK(name(cases[0].measured[3].quantity) == "bus_bandwidth");
}

TEST_CASE("A measurement that cannot be read puts its row out of use, not the table") {
  const auto cases = read_cases_text(
      std::string(header) + "a,g,l4-x1,gpt2,1,OOM,\nb,g,l4-x1,gpt2,1,1 s,\nc,g,l4-x1,gpt2,1,0 s,\n", "t.csv");
  REQUIRE(cases.size() == 3);
  CHECK(cases[0].measured.empty());
  CHECK_THROWS_WITH(document_of(cases[0]), Catch::StartsWith("t.csv:2:18: measured.step_time: \"OOM\""));
  CHECK(scenario_of(cases[1]).name == "b");
  CHECK_THROWS_WITH(scenario_of(cases[2]), Catch::StartsWith("t.csv:4:18: measured.step_time: a measurement of zero"));
}

TEST_CASE("Bad cells are named by line and column") {
  const auto row = [](const std::string& cells) { return complaint(std::string(header) + cells + "\n"); };
  CHECK(row("a,g,dgx-a100-80gb,gpt2,3,1 s,") ==
        "t.csv:2:24: plan.tensor: tensor 3 x pipeline 1 x context 1 = 3 does not divide the 8 GPUs; tensor x "
        "pipeline x context x data = 8");
  CHECK(row("a,g,dgx-a100-80gb,gpt2,1,3.5,").find("t.csv:2:26: measured.step_time: \"3.5\" has no unit") == 0);
  CHECK(row("a,g,dgx-a100-80gb,gpt2,1,0 s,").find("a measurement of zero") != std::string::npos);
  CHECK(row("a,g,dgx-a100-90gb,gpt2,1,1 s,").find("t.csv:2:5: cluster.node: unknown node") == 0);
  CHECK(row("a,g,,gpt2,1,1 s,") == "t.csv:2:1: cluster: this key is missing; a value for it");
  CHECK(complaint("cluster.node,workload.train.model,plan.tensr\nl4-x1,gpt2,1\n") ==
        "t.csv:2:12: plan.tensr: unknown key; did you mean plan.tensor?");
  CHECK(complaint("case,measured.step_tme\na,1\n") ==
        "t.csv:1:6: measured.step_tme: unknown measured quantity; did you mean measured.step_time?");
  CHECK(complaint("case,colour\na,red\n").find("t.csv:1:6: colour: unknown column") == 0);
  CHECK(complaint("case,clutser.node\na,x\n").find("did you mean cluster?") != std::string::npos);
  CHECK(complaint("case,base\na,no-such-run\n").find("t.csv:2:3: base: unknown scenario") == 0);
}
