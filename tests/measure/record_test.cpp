#include "validate/measure/record.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "validate/measure/json_object.hpp"

using namespace foretrain;
using Json = nlohmann::json;

namespace {

Record matmul() {
  Record record;
  record.suite = "gemm";
  record.name = "matmul m=4096";
  record.scenario = {{"workload.operator.kind", "matmul"}, {"workload.operator.m", "4096"}};
  record.parameters = {{"timing", "stream"}};
  record.unit = "s";
  record.values = {3e-4, 1e-4, 2e-4, 2e-4, 2e-4};
  return record;
}

}  // namespace

TEST_CASE("A record is one line of JSON with its values and what follows from them", "[measure]") {
  Record record = matmul();
  record.device = 3;
  record.state = DeviceState{1755, 612.3, {"power"}};
  const std::string line = to_json_line(record);
  CHECK(line.find('\n') == line.size() - 1);
  const Json json = Json::parse(line);
  CHECK(json["suite"] == "gemm");
  CHECK(json["name"] == "matmul m=4096");
  CHECK(json["status"] == "measured");
  CHECK(json["scenario"]["workload.operator.m"] == "4096");
  CHECK(json["parameters"]["timing"] == "stream");
  CHECK(json["device"] == 3);
  CHECK(json["values"] == Json({3e-4, 1e-4, 2e-4, 2e-4, 2e-4}));
  // In order 1 2 2 2 3: the median is 2, the quartiles are both 2.
  CHECK(json["median"] == 2e-4);
  CHECK(json["best"] == 1e-4);
  CHECK(json["spread"] == 0.0);
  CHECK(json["state"]["throttle"] == Json({"power"}));
  CHECK(json["state"]["power_w"] == 612.3);
}

TEST_CASE("Any text is read back as it was", "[measure]") {
  Record record = matmul();
  record.name = "a \"quoted\" name \\ with a tab\t, a line\nbreak, \x01 and µs";
  record.note = "\x1f";
  const std::string line = to_json_line(record);
  CHECK(line.find('\n') == line.size() - 1);
  const Json json = Json::parse(line);
  CHECK(json["name"] == record.name);
  CHECK(json["note"] == record.note);
  CHECK(json_text_field(line, "name") == record.name);
  CHECK(json_text_field(line, "note") == record.note);
  CHECK(json_text_field(line, "nothing").empty());
}

TEST_CASE("Numbers are short and exact; what is no number is refused", "[measure]") {
  CHECK(json_number(0.1) == "0.1");
  CHECK(json_number(132.0) == "132");
  CHECK(std::stod(json_number(1.0 / 3.0)) == 1.0 / 3.0);
  CHECK_THROWS_AS(json_number(std::nan("")), std::invalid_argument);
  CHECK_THROWS_AS(json_number(std::numeric_limits<double>::infinity()), std::invalid_argument);
  Record record = matmul();
  record.values.push_back(std::nan(""));
  CHECK_THROWS_AS(to_json_line(record), std::invalid_argument);
}

TEST_CASE("A measured record has values; one that failed or was skipped says why", "[measure]") {
  Record record = matmul();
  record.values.clear();
  CHECK_THROWS_AS(to_json_line(record), std::invalid_argument);
  record.status = RecordStatus::skipped;
  record.note = "out of memory";
  const Json json = Json::parse(to_json_line(record));
  CHECK(json["status"] == "skipped");
  CHECK(json["note"] == "out of memory");
  CHECK_FALSE(json.contains("median"));
}

TEST_CASE("An object keeps the order of its fields, and leaves out what is not known", "[measure]") {
  const std::string text = JsonObject()
                               .text("name", "a \"GPU\"")
                               .number("sms", 132)
                               .number("numa_node", std::optional<int>())
                               .number("pcie_width", std::optional<int>(16))
                               .flag("ecc", true)
                               .flag("mig", std::optional<bool>())
                               .raw("gpus", json_list({"1", "2"}))
                               .str();
  CHECK(text == R"({"name":"a \"GPU\"","sms":132,"pcie_width":16,"ecc":true,"gpus":[1,2]})");
  CHECK(json_list({}) == "[]");
}

TEST_CASE("A line that was cut off in a text gives what is left of it", "[measure]") {
  CHECK(json_text_field(R"({"name":"a\"b)", "name") == "a\"b");
  CHECK(json_text_field(R"({"name":"a\")", "name") == "a\"");
  CHECK(json_text_field(R"({"name":"a\)", "name") == "a\\");
}
