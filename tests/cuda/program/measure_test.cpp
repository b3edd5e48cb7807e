#include "tests/catch.hpp"
#include "tests/cuda/program/gpu_program.hpp"

using namespace foretrain;
using namespace foretrain::test;
using Json = nlohmann::json;

namespace {

const std::vector<std::string> all_suites = {"launch",    "memory", "copy",       "gemm",    "convolution", "attention",
                                             "streaming", "peer",   "collective", "devices", "overlap"};

void check_record(const Json& record, const std::string& suite) {
  INFO(record.dump());
  CHECK(record["suite"] == suite);
  CHECK(record["unit"].get<std::string>().size() > 0);
  CHECK(record["device"].is_number_integer());
  for (const auto& map : {record["scenario"], record["parameters"]}) {
    for (const auto& [key, value] : map.items()) CHECK(value.is_string());
  }
  if (record["status"] == "measured") {
    CHECK(record["values"].size() >= 1);
    CHECK(record["values"].size() <= 200);
    CHECK(record["median"].get<double>() >= 0.0);
    CHECK(record["best"] <= record["median"]);
    CHECK(record["state"]["sm_mhz"] == 1755.0);
    CHECK(record["state"]["throttle"] == Json({"power"}));
  } else {
    CHECK(record["status"] == "skipped");
    CHECK(record["note"].get<std::string>().size() > 0);
  }
}

}  // namespace

TEST_CASE("A whole quick run leaves every suite as valid JSON; another run measures nothing again", "[gpu]") {
  const MeasuredFolder folder;
  const FilterResult run = folder.measure("", "devices=2");
  INFO(run.errors);
  CHECK(run.status == 0);
  CHECK(run.output.empty());
  const Json machine = Json::parse(folder.text("machine.json"));
  CHECK(machine["gpu_count"] == 2);
  CHECK(machine["gpus"][1]["bus_id"] == "0000:18:00.0");
  CHECK(machine["gpus"][0]["sms"] == 132);
  // Each GPU has 18 links, all to a switch: all of them lead to the other one.
  CHECK(machine["links"][0]["nvlinks"] == 18);
  std::map<std::string, std::string> before;
  for (const std::string& suite : all_suites) {
    INFO(suite);
    std::set<std::string> names;
    const std::vector<Json> records = folder.records(suite);
    CHECK(records.size() > 0);
    for (const Json& record : records) {
      check_record(record, suite);
      CHECK(names.insert(record["name"].get<std::string>()).second);
    }
    CHECK(run.errors.find("\n" + suite + " ") != std::string::npos);
    before[suite] = folder.text(suite + ".jsonl");
  }
  // Collectives are those of one process a GPU, as training has it.
  for (const Json& record : folder.records("collective")) {
    CHECK(record["parameters"]["processes"] == "2");
    CHECK(record["parameters"]["nodes"] == "1");
  }
  // Some products are also measured for so long that power limits them: no fit of short ones is judged by these.
  int sustained = 0;
  for (const Json& record : folder.records("gemm")) {
    if (!record["parameters"].contains("sustained")) continue;
    ++sustained;
    CHECK(record["parameters"]["held_out"] == "false");
  }
  CHECK(sustained == 5);
  // Two kinds of work on each of two GPUs.
  CHECK(folder.count("devices", "measured").size() == 4);
  const FilterResult again = folder.measure("", "devices=2");
  INFO(again.errors);
  CHECK(again.status == 0);
  for (const std::string& suite : all_suites) CHECK(folder.text(suite + ".jsonl") == before[suite]);
}

TEST_CASE("A GPU from before Ampere is measured in fp16, which it has, in place of bf16", "[gpu]") {
  const MeasuredFolder folder;
  const FilterResult run = folder.measure("gemm,streaming", "capability=75");
  INFO(run.errors);
  CHECK(run.status == 0);
  // Of every suite most points are of bf16 on other GPUs: 24 products, half of the rest.
  for (const auto& [suite, least] : {std::pair("gemm", 30), {"streaming", 20}}) {
    INFO(suite);
    const auto measured = folder.count(suite, "measured");
    CHECK(static_cast<int>(measured.size()) >= least);
    for (const auto& [name, times] : measured) CHECK(name.find("bf16") == std::string::npos);
    for (const auto& [name, times] : folder.count(suite, "skipped")) CHECK(name.find("bf16") == std::string::npos);
  }
}

TEST_CASE("Short kernels are not timed by their launches, however slow the host is", "[gpu]") {
  const auto time_of = [](const std::string& settings) {
    const MeasuredFolder folder;
    CHECK(folder.measure("launch", settings).status == 0);
    for (const Json& record : folder.records("launch")) {
      if (record["name"] == "kernel_back_to_back timing=stream blocks=1") return record["median"].get<double>();
    }
    return 0.0;
  };
  // The stand-in's empty kernel takes 4 to 19 us; 30 us a call is slower than that.
  const double time = time_of("");
  CHECK(time >= 4e-6);
  CHECK(time_of("call_us=30") == Approx(time).epsilon(0.02));
  // A host that is away for a while, longer than the device can be kept busy, is late for a batch, not for good.
  CHECK(time_of("call_us=60,away_at=70,away_for=500") == Approx(time).epsilon(0.02));
}

TEST_CASE("Ctrl-C ends a run in good order, and what was measured is kept", "[gpu]") {
  const MeasuredFolder folder;
  // Each wait takes 30 ms here, so that the run is still at its first suite after a second.
  const FilterResult run = folder.measure("launch,copy", "slow=30", {"timeout", "--preserve-status", "-s", "INT", "1"});
  INFO(run.errors);
  CHECK(run.status == 130);
  CHECK(run.errors.find("interrupted") != std::string::npos);
  CHECK(folder.count("launch", "measured").size() > 0);
  CHECK(folder.count("launch", "failed").empty());
  CHECK(folder.count("copy", "measured").empty());
}

TEST_CASE("Suites that need several GPUs say so where there is one", "[gpu]") {
  const MeasuredFolder folder;
  const FilterResult run = folder.measure("peer,collective");
  CHECK(run.status == 0);
  CHECK(run.errors.find("not measured: it needs two GPUs") != std::string::npos);
}

TEST_CASE("A folder does not take measurements of another machine", "[gpu]") {
  const MeasuredFolder folder;
  CHECK(folder.measure("launch", "devices=2").status == 0);
  const FilterResult other = folder.measure("launch");
  CHECK(other.status == 2);
  CHECK(other.errors.find("holds measurements of another machine") != std::string::npos);
}
