#include "validate/fit/raw.hpp"

#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"
#include "tests/fit/synthetic.hpp"

using namespace foretrain;

namespace {

std::string line(const std::string& name, const std::string& rest) {
  return fmt::format(R"({{"suite":"gemm","name":"{}",{}}})", name, rest) + "\n";
}
const std::string good = R"("status":"measured","scenario":{},"parameters":{},"device":0,"unit":"s","values":[2,1,3])";

}  // namespace

TEST_CASE("A record keeps its values; of lines with one name the last holds") {
  // A point that failed at first and was measured by a later run has two lines.
  const std::vector<RawPoint> points =
      read_records(line("a", R"("status":"failed","note":"lost")") + line("b", good) + line("a", good), "gemm.jsonl");
  REQUIRE(points.size() == 2);
  CHECK(points[0].record.name == "a");
  CHECK(points[0].record.status == RecordStatus::measured);
  CHECK(points[0].where.line == 3);
  CHECK(points[0].median() == 2.0);          // of 2, 1, 3
  CHECK(points[0].spread() == Approx(0.5));  // quartiles 1.5 and 2.5 over 2
  CHECK_FALSE(points[0].held_out());
}

TEST_CASE("What a folder holds is counted, and only what was measured is kept") {
  const TemporaryFolder folder;
  folder.write("machine.json", synthetic::machine_json());
  folder.write("gemm.jsonl", line("a", good) + line("b", R"("status":"skipped","note":"no fp8 here")"));
  folder.write("peer.jsonl", R"({"suite":"peer","name":"p","status":"failed","note":"one GPU"})");
  const RawMeasurements raw = read_measurements(folder.path());
  REQUIRE(raw.points.size() == 1);
  CHECK(raw.suites.at("gemm").measured == 1);
  CHECK(raw.suites.at("gemm").skipped == 1);
  CHECK(raw.suites.at("peer").failed == 1);
  CHECK(raw.of_suite("peer").empty());
}

TEST_CASE("Records that are wrong are refused with file and line, and what to do") {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {R"({"suite":"gemm","name":"a","status":"meas)", "missing closing quote"},
      {line("a", R"("status":"perhaps")"), "unknown status \"perhaps\""},
      {line("a", R"("status":"measured","unit":"s","values":[])"), "without a value"},
      {line("a", R"("status":"measured","unit":"ms","values":[1])"), "unknown unit \"ms\""},
      {line("a", R"("status":"measured","unit":"s","values":[1e999])"), "number overflow"},
      {line("a", R"("status":"measured","unit":"s","values":["1"])"), "must be number"},
      {line("a", R"("status":"measured","unit":"s","values":[0],"scenario":{"workload.operator.kind":"copy"})"),
       "not positive"},
      {line("a", R"("status":"measured","unit":"s","values":[1],"scenario":{"workload.operator.m":1})"),
       "must be string"},
      {line("a", R"("status":"measured","unit":"s","values":[1],"scenario":[])"), "must be object"},
      {R"({"suite":"gemm","status":"measured"})", "key 'name' not found"},
      {"[1,2]\n", "no record"},
  };
  for (const auto& [text, wrong] : rows) {
    const std::string said = test::complaint_of([&] { (void)read_records(line("first", good) + text, "gemm.jsonl"); });
    INFO(said);
    CHECK(said.find("gemm.jsonl:2") == 0);
    CHECK(said.find(wrong) != std::string::npos);
    CHECK(said.find(';') != std::string::npos);  // what would be right
  }
}

TEST_CASE("Folders that hold no measurements are refused") {
  const TemporaryFolder folder;
  CHECK(test::complaint_of([&] { (void)read_measurements(folder.path() / "none"); }).find("no folder") !=
        std::string::npos);
  CHECK(test::complaint_of([&] { (void)read_measurements(folder.path()); }).find("machine.json") != std::string::npos);
  folder.write("machine.json", synthetic::machine_json());
  CHECK(test::complaint_of([&] { (void)read_measurements(folder.path()); }).find("no records") != std::string::npos);
}

TEST_CASE("machine.json is read as the driver wrote it, and complaints have a position") {
  const Machine machine = read_machine_text(synthetic::machine_json(2), "machine.json");
  REQUIRE(machine.gpus.size() == 2);
  const MeasuredGpu& gpu = machine.gpus.front();
  CHECK(gpu.name == "Synthetic 5000");
  CHECK(gpu.compute_capability == Approx(8.9));
  CHECK(gpu.clock.value() == Approx(2e9));
  // Two transfers per clock of 8 GHz over 256 bit = 32 bytes: 512 GB/s.
  REQUIRE(gpu.peak_bandwidth());
  CHECK(gpu.peak_bandwidth()->value() == Approx(512e9));
  CHECK(machine.links.size() == 2);
  CHECK_FALSE(machine.has_nvswitch());

  const std::vector<std::pair<std::string, std::string>> rows = {
      {"[]", "no description of a machine"},
      {"{}", "key 'gpus' not found"},
      {R"({"gpus":[]})", "no GPU"},
      {R"({"gpus":[{"index":0,"name":"x"}]})", "no compute_capability"},
      {R"({"gpus":[{"index":0,"name":"x","compute_capability":"9.0","sms":true}]})", "must be number"},
      {R"({"gpus":)", "unexpected end of input"},
  };
  for (const auto& [text, wrong] : rows) {
    const std::string said = test::complaint_of([&] { (void)read_machine_text(text, "machine.json"); });
    INFO(said);
    CHECK(said.find("machine.json:") == 0);
    CHECK(said.find(wrong) != std::string::npos);
  }
}

TEST_CASE("Files of other readers in the same folder are ignored") {
  // Training steps and replays lie beside the suites.
  const TemporaryFolder folder;
  folder.write("machine.json", synthetic::machine_json());
  folder.write("gemm.jsonl", line("a", good));
  folder.write("notes.jsonl", "{\"case\": \"resnet-50\", \"step_time\": 0.1}\n");
  CHECK(read_measurements(folder.path()).points.size() == 1);
}

TEST_CASE("A replay's kernel that was timed without being run is reported") {
  const TemporaryFolder folder;
  folder.write("machine.json", synthetic::machine_json());
  folder.write("replay-net.json",
               R"({"kind":"foretrain gpu replay","name":"net","status":"measured","work":[{"block":"forward",)"
               R"("name":"cast","work_number":0,"tasks":1,"kind":"traffic","count":0,"measured_s":1,)"
               R"("fields":{"read":"4","written":"4","pattern":"elementwise","precision":"fp32"}}]})");
  CHECK(test::complaint_of([&] {
          (void)read_measurements(folder.path());
        }).find("a kernel of net was measured without being run") != std::string::npos);
}

TEST_CASE("Cards carry an eighth of their bits in bytes, and an instance has whole eighths of its board's bandwidth") {
  const Machine machine = read_machine_text(synthetic::machine_json(1, 2), "machine.json");
  CHECK(machine.network_cards == 2);
  CHECK(machine.card_rate.value() == 1.25e9);  // 10 Gbit/s
  // 2 x 8 GHz x 256 bit are 512 GB/s.
  CHECK(machine.gpus.front().peak_bandwidth()->value() == Approx(512e9));
  const auto of_instance = [](double share) {
    std::string text = synthetic::machine_json();
    const std::string reported = "\"mig\":null";
    text.replace(text.find(reported), reported.size(),
                 fmt::format("\"mig\":true,\"board_memory_bytes\":{:.0f}", 34359738368.0 / share));
    return read_machine_text(text, "machine.json").gpus.front().peak_bandwidth()->value();
  };
  CHECK(of_instance(0.46) == Approx(256e9));  // 3.7 eighths are four
  CHECK(of_instance(0.97) == Approx(512e9));  // all but nothing
  CHECK(of_instance(0.05) == Approx(64e9));   // one at least
  CHECK(of_instance(0.115) == Approx(64e9));
}
