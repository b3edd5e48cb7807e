#include <cmath>
#include <set>

#include "tests/catch.hpp"
#include "tests/cuda/program/gpu_program.hpp"

using namespace foretrain;
using namespace foretrain::test;
using Json = nlohmann::json;

namespace {

const std::vector<std::string> all_suites = {"launch",    "memory",    "copy", "gemm",       "convolution",
                                             "attention", "streaming", "peer", "collective", "overlap"};

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
  const FilterResult again = folder.measure("", "devices=2");
  INFO(again.errors);
  CHECK(again.status == 0);
  for (const std::string& suite : all_suites) CHECK(folder.text(suite + ".jsonl") == before[suite]);
}

TEST_CASE("A run that was killed goes on, and each point is there once", "[gpu]") {
  const MeasuredFolder whole;
  CHECK(whole.measure("launch,memory").status == 0);
  const MeasuredFolder folder;
  // The GPU's 400th launch kills the child and the parent.
  const FilterResult killed = folder.measure("launch,memory", "kill_at=400,once=" + folder.beside("once"));
  CHECK(killed.status == 128 + 9);
  const auto kept = folder.count("launch", "measured");
  CHECK(kept.size() > 0);
  CHECK(kept.size() < whole.count("launch", "measured").size());
  const FilterResult resumed = folder.measure("launch,memory");
  INFO(resumed.errors);
  CHECK(resumed.status == 0);
  for (const std::string suite : {"launch", "memory"}) {
    const auto points = folder.count(suite, "measured");
    CHECK(points == whole.count(suite, "measured"));
    for (const auto& [name, times] : points) CHECK(times == 1);
  }
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

TEST_CASE("The chosen GPU is measured", "[gpu]") {
  const MeasuredFolder folder;
  std::vector<std::string> words = {"measure", "-o",     folder.path(), "--quick", "--unverified",
                                    "--only",  "launch", "--device",    "1"};
  CHECK(run_gpu(words, "devices=2").status == 0);
  CHECK(folder.records("launch").front()["device"] == 1);
  CHECK(Json::parse(folder.text("machine.json"))["measured_device"] == 1);
  // The same folder does not take measurements of the other one.
  words.back() = "0";
  const FilterResult other = run_gpu(words, "devices=2");
  CHECK(other.status == 2);
  CHECK(other.errors.find("holds measurements of another machine") != std::string::npos);
}
