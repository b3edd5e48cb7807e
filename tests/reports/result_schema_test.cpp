// The schema of results is identified by the same fields as their JSON.

#include <nlohmann/json.hpp>

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/result/json.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

namespace {

using nlohmann::json;

bool has_type(const json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == value.type_name();
}

/// Violations of the schema by a value, by the keywords that schemas of results use; empty where it fits.
/// Keys that the schema does not know are reported as well.
std::string misfit(const json& schema, const json& value, const std::string& at) {
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end()) return at + ": word";
  if (schema.contains("type")) {
    const json types = schema["type"].is_array() ? schema["type"] : json::array({schema["type"]});
    if (std::ranges::none_of(types, [&](const json& type) { return has_type(value, type); })) return at + ": type";
  }
  for (const json& key : schema.value("required", json::array())) {
    if (!value.contains(key.get<std::string>())) return at + ": no " + key.get<std::string>();
  }
  if (value.is_array()) {
    for (const json& one : value) {
      if (const std::string wrong = misfit(schema["items"], one, at + "[]"); !wrong.empty()) return wrong;
    }
  }
  json known = schema.value("properties", json::object());
  if (schema.contains("anyOf")) {
    std::string wrong;
    const bool fits = std::ranges::any_of(schema["anyOf"], [&](const json& kind) {
      json own = kind;
      if (value.is_object()) own["properties"].update(known);
      wrong = misfit(own, value, at);
      return wrong.empty();
    });
    return fits ? "" : wrong;
  }
  if (!value.is_object()) return "";
  for (const auto& [key, part] : value.items()) {
    if (!known.contains(key) && !schema.contains("additionalProperties")) return at + ": unknown " + key;
    const json& of_part = known.contains(key) ? known[key] : schema["additionalProperties"];
    if (const std::string wrong = misfit(of_part, part, at + "." + key); !wrong.empty()) return wrong;
  }
  return "";
}

std::string misfit(const json& result) { return misfit(json::parse(result_schema()), result, "result"); }

}  // namespace

TEST_CASE("Golden results fit the schema of results") {
  const std::filesystem::path folder = std::filesystem::path(FORETRAIN_SOURCE_DIR) / "tests" / "golden";
  CHECK(misfit(json::parse(text_of(folder / "train.json"))) == "");
  for (const json& result : json::parse(text_of(folder / "other_workloads.json"))) CHECK(misfit(result) == "");
}

TEST_CASE("Results of every kind of work fit the schema of results") {
  for (const char* run : {"gpt3-175b-1024-a100", "servers-jitter", "failures-goodput-llama3-405b",
                          "fit-offload-optimizer", "contention-two-jobs-one-uplink", "unequal-split-h100-a100",
                          "failures-checkpoints", "execution-mlp", "hierarchy-l1", "sync-ring-4"}) {
    INFO(run);
    CHECK(misfit(json::parse(to_json(predict(load_scenario(run), Fidelity::estimate)))) == "");
  }
  CHECK(misfit(json::parse(to_json(predict(load_scenario("contention-two-trainings"), Fidelity::flows)))) == "");
}

TEST_CASE("The schema refuses a result without its time, of an unknown fidelity, with a word for a number") {
  const json right = json::parse(to_json(large_step()));
  REQUIRE(misfit(right) == "");
  json wrong = right;
  wrong.erase("step_time_s");
  CHECK(misfit(wrong) != "");
  wrong = right;
  wrong["fidelity"] = "guess";
  CHECK(misfit(wrong) == "result.fidelity: word");
  wrong = right;
  wrong["mfu"] = "high";
  CHECK(misfit(wrong) == "result.mfu: type");
}

TEST_CASE("The schema that the documentation holds is the program's") {
  // `make keys` writes it anew.
  CHECK(result_schema() == text_of(FORETRAIN_SOURCE_DIR "/reports/docs/result.schema.json"));
}

TEST_CASE("Results say which version of their schema they follow; those of before are read, later ones are not") {
  json json = json::parse(to_json(large_step()));
  CHECK(json["schema_version"] == 1);
  json.erase("schema_version");
  json.erase("parameters");
  CHECK(result_from_json(json.dump()).train()->step_time == Seconds(44.0));
  json["schema_version"] = 2;
  CHECK_THROWS_AS(result_from_json(json.dump()), ScenarioError);
}

}  // namespace foretrain::test
