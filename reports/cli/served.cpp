#include "reports/cli/served.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "model/base/utf8.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/options.hpp"
#include "reports/print/names.hpp"
#include "reports/result/json.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// What a scenario without a file is called where a file is named.
constexpr const char* unnamed = "scenario.yaml";

std::filesystem::path file_of(const std::string& name) {
  const YamlNode written = yaml_scalar(name, {"", 0, 0});
  return catalogue_file(CatalogueSection::run, Field(written, "scenario"));
}

/// As of a file, whose byte order mark is no part of the text.
YamlNode document_of(std::string_view text, const std::vector<std::string>& overrides) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  YamlNode document = parse_yaml(text, unnamed);
  for (const std::string& change : overrides) apply_override(document, parse_override(change));
  return document;
}

Fidelity fidelity_of(const std::string& word) {
  if (word.empty()) return Fidelity::flows;
  const std::optional<Fidelity> fidelity = value_of<Fidelity>(word);
  if (!fidelity)
    throw UsageError(fmt::format("there is no fidelity {}; estimate, flows or steps", shortened(word, 60)));
  return *fidelity;
}

bool is_text(std::string_view scenario) { return scenario.find_first_of(":\n{") != std::string_view::npos; }

/// What is to be predicted.
struct Question {
  std::string scenario = {};  ///< a name or a text
  std::vector<std::string> set = {};
  std::string fidelity = {};
};

/// Of what stands behind the question mark of the address.
Question read_question(const HttpRequest& request) {
  Question question;
  for (const auto& [key, value] : request.parameters) {
    if (key == "scenario") {
      question.scenario = value;
    } else if (key == "set") {
      question.set.push_back(value);
    } else if (key == "fidelity") {
      question.fidelity = value;
    } else {
      throw UsageError(fmt::format("there is no parameter \"{}\"; scenario, set or fidelity", shortened(key, 60)));
    }
  }
  return question;
}

/// A text, or a name of the catalogue.
HttpAnswer predicted(const std::string& scenario, bool text, const Question& question) {
  require_text(scenario, unnamed);
  const Fidelity fidelity = fidelity_of(question.fidelity);
  const YamlNode document =
      text ? document_of(scenario, question.set) : scenario_document(file_of(scenario), question.set);
  const std::string name = std::filesystem::path(text ? unnamed : scenario).stem().string();
  return {200, to_json(predict(planned_scenario(document, name, fidelity), fidelity)) + "\n"};
}

/// The question that a client asks as JSON.
Question read_question(const json& asked) {
  Question question;
  for (const auto& [key, value] : asked.items()) {
    if (key == "scenario" && value.is_string()) {
      question.scenario = value;
    } else if (key == "fidelity" && value.is_string()) {
      question.fidelity = value;
    } else if (key == "set" && value.is_array() && std::ranges::all_of(value, &json::is_string)) {
      question.set = value;
    } else {
      throw UsageError(fmt::format("\"{}\": unknown, or of another kind; {}", shortened(key, 60),
                                   R"({"scenario": "a name or YAML", "set": ["plan.tensor=4"], "fidelity": "flows"})"));
    }
  }
  return question;
}

/// Where in the text the byte stands.
SourcePosition place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto lines = std::ranges::count(before, '\n');
  const std::size_t column = before.size() - (before.rfind('\n') + 1);
  return {"the request", static_cast<int>(lines) + 1, std::max(1, static_cast<int>(column))};
}

json parse_json(const std::string& text) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw ScenarioError(place_of(text, error.byte), "", "this is no JSON",
                        "a scenario as YAML, or {\"scenario\": \"a name or YAML\"} as JSON");
  }
}

/// A body is the scenario, unless it is JSON with a key `scenario`.
HttpAnswer predicted(const HttpRequest& request) {
  const Question question = read_question(request);
  if (request.method != "POST") {
    if (!question.scenario.empty()) return predicted(question.scenario, is_text(question.scenario), question);
    return complaint(400, "no scenario",
                     "GET /predict?scenario=gpt2-xl-dgx-a100, or POST /predict with a scenario as the body");
  }
  const bool is_json = request.content_type.starts_with("application/json");
  const json asked = is_json ? parse_json(request.body) : json::parse(request.body, nullptr, false);
  if (!asked.is_object() || !asked.contains("scenario")) return predicted(request.body, true, question);
  Question inner = read_question(asked);
  inner.set.insert(inner.set.end(), question.set.begin(), question.set.end());
  if (inner.fidelity.empty()) inner.fidelity = question.fidelity;
  return predicted(inner.scenario, is_text(inner.scenario), inner);
}

HttpAnswer listed(const std::vector<CatalogueEntry>& entries) {
  ordered_json all = ordered_json::array();
  for (const CatalogueEntry& entry : entries) {
    all.push_back({{"name", entry.name}, {"kind", entry.kind}, {"description", entry.description}});
  }
  return {200, all.dump(2) + "\n"};
}

HttpAnswer answered(const HttpRequest& request) {
  constexpr std::string_view one = "/scenarios/";
  if (request.path == "/predict") return predicted(request);
  if (request.path == "/scenarios") return listed(list_scenarios());
  if (request.path == "/models") return listed(list_models());
  if (request.path == "/hardware") return listed(list_hardware());
  if (request.path.starts_with(one)) {
    return {200, read_text_file(file_of(request.path.substr(one.size()))), "application/yaml"};
  }
  return complaint(404, "there is nothing at this address", "/, /predict, /scenarios, /models, /hardware or /schema");
}

}  // namespace

HttpAnswer answer_request(const HttpRequest& request) {
  refuse_paths();
  HttpAnswer answer;
  const Reply reply = reply_to([&] {
    try {
      answer = answered(request);
    } catch (const ScenarioError& error) {
      answer = complaint(error);
    }
    return std::string();
  });
  switch (reply.kind) {
    case Reply::Kind::answer:
      return answer;
    case Reply::Kind::bad_input:
      return complaint(400, reply.text);
    case Reply::Kind::interrupted:
      return complaint(503, reply.text, "ask again in a while, or of a smaller scenario");
    case Reply::Kind::failure:
      break;
  }
  return complaint(500, reply.text);
}

}  // namespace foretrain
