#include "reports/page/page.hpp"

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <initializer_list>

#include "model/base/error.hpp"
#include "model/base/words.hpp"
#include "reports/page/page_json.hpp"
#include "reports/page/template.hpp"
#include "reports/result/json.hpp"

namespace foretrain {

namespace {

/// The scenario's object; a new one where the page has none of that name.
PageJson& scenario_named(PageJson& data, const std::string& name) {
  for (PageJson& scenario : data["scenarios"]) {
    if (scenario["name"] == name) return scenario;
  }
  data["scenarios"].push_back({{"name", name}});
  return data["scenarios"].back();
}

PageJson without_places(PageJson explanation) {
  for (PageJson& remedy : explanation["remedies"]) {
    if (remedy.contains("why_not")) remedy["why_not"] = without_place(remedy["why_not"]);
  }
  return explanation;
}

/// An answer of the scenario, and what is drawn of it.
void put(PageJson& scenario, const char* what, PageJson (*figures)(const PageJson&), const PageJson& answer) {
  scenario[what] = answer;
  const PageJson drawn = figures(answer);
  scenario["figures"].update(drawn);
}

/// Null where there is nothing to draw.
template <typename Drawn>
PageJson figure_of(const Drawn& drawn) {
  try {
    return figure_json(to_figure(drawn));
  } catch (const UsageError&) {
    return nullptr;
  }
}

void add_scenario(PageJson& data, const ScenarioPart& part) {
  const Result& result = part.explanation.result;
  PageJson json = {{"name", result.scenario}, {"gpus", part.gpus}};
  put(json, "result", result_figures, PageJson::parse(to_json(result)));
  put(json, "explanation", explanation_figures, without_places(PageJson::parse(to_json(part.explanation))));
  if (part.memory) put(json, "memory", memory_figures, PageJson::parse(to_json(*part.memory)));
  if (part.scaling) {
    json["scaling"] = {{"fidelity", name(part.scaling->fidelity)},
                       {"kept", part.scaling->chart.steps.subtitle},
                       {"not_predicted", part.scaling->not_predicted}};
    json["figures"]["scaling"] = figure_json(scaling_figure(*part.scaling));
    json["figures"]["servers"] = figure_json(servers_figure(part.scaling->chart.steps));
  }
  if (part.roofline) json["figures"]["roofline"] = figure_of(*part.roofline);
  if (part.links) {
    json["links"] = links_json(*part.links);
    json["figures"]["links"] = figure_of(*part.links);
  }
  if (!result.timeline.empty()) json["figures"]["timeline"] = figure_json(timeline_figure(result));
  data["scenarios"].push_back(std::move(json));
  if (part.plans) data["plans"].push_back(PageJson::parse(to_json(*part.plans)));
}

void add_answer(PageJson& data, const std::string& file, const PageJson& answer) {
  if (answer.is_array()) {
    for (const PageJson& one : answer) add_answer(data, file, one);
    return;
  }
  const auto has = [&](const char* key) { return answer.is_object() && answer.contains(key); };
  if (has("plans") && has("space")) {
    data["plans"].push_back(answer);
  } else if (has("groups") && has("overall")) {
    PageJson accuracy = {{"name", file}};
    accuracy.update(answer);
    accuracy["figure"] = accuracy_figure(answer);
    data["accuracy"].push_back(std::move(accuracy));
  } else if (has("scenario") && has("causes")) {
    scenario_named(data, answer["scenario"].get<std::string>())["diagnosis"] = answer;
  } else if (has("scenario") && (has("sensitivities") || has("timeline") || has("provenance"))) {
    PageJson& scenario = scenario_named(data, answer["scenario"].get<std::string>());
    if (has("sensitivities")) {
      put(scenario, "explanation", explanation_figures, answer);
    } else if (has("timeline")) {
      put(scenario, "memory", memory_figures, answer);
    } else {
      put(scenario, "result", result_figures, answer);
    }
  } else {
    throw UsageError(file + ": no answer of predict, explain, memory, plan, validate or diagnose with --json");
  }
}

using Escapes = std::initializer_list<std::pair<const char*, const char*>>;

std::string with_escapes(std::string text, Escapes escapes) {
  for (const auto& [sign, escape] : escapes) boost::replace_all(text, sign, escape);
  return text;
}

/// JSON that no name in it can end: neither the element that holds it, nor a line of a script.
std::string script_text(const PageJson& json) {
  return with_escapes(
      json.dump(-1, ' ', false, PageJson::error_handler_t::replace),
      {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}, {"\u2028", "\\u2028"}, {"\u2029", "\\u2029"}});
}

/// A bar for each scenario that has a step.
PageJson comparison_figure(const PageJson& scenarios) {
  std::vector<BreakdownBar> bars;
  for (const PageJson& scenario : scenarios) {
    if (!scenario.contains("result") || !scenario["result"].contains("breakdown_s")) continue;
    const Result result = result_from_json(scenario["result"].dump());
    if (result.train() != nullptr) bars.push_back({result.scenario, result.train()->breakdown});
  }
  return bars.size() < 2 ? PageJson(nullptr) : figure_json(to_figure(bars));
}

}  // namespace

PageJson page_data(const Page& page) {
  PageJson data = {{"title", page.title}, {"program", page.program}};
  for (const char* part : {"scenarios", "sweeps", "plans", "accuracy"}) data[part] = PageJson::array();
  for (const ScenarioPart& scenario : page.scenarios) add_scenario(data, scenario);
  for (const auto& [name, table] : page.sweeps) data["sweeps"].push_back(sweep_json(name, table));
  for (const auto& [name, report] : page.accuracy) add_answer(data, name, PageJson::parse(to_json(report)));
  for (const auto& [file, text] : page.answers) {
    const PageJson answer = PageJson::parse(text, nullptr, false);
    if (answer.is_discarded()) throw UsageError(file + ": this is no JSON");
    try {
      add_answer(data, file, answer);
    } catch (const ScenarioError& error) {
      throw ScenarioError({file}, error.key(), error.got(), error.expected());
    } catch (const PageJson::exception& error) {
      const std::string what = error.what();  // behind "[json.exception.type_error.302] "
      throw ScenarioError({file}, "", what.substr(std::min(what.find("] ") + 2, what.size())),
                          "an answer as foretrain wrote it");
    }
  }
  data["comparison"] = comparison_figure(data["scenarios"]);
  return data;
}

std::string to_html(const Page& page) {
  std::string html(page_template());
  const auto put = [&](std::string_view place, const std::string& text) {
    html.replace(html.find(place), place.size(), text);
  };
  put(page_data_place, script_text(page_data(page)));
  put(page_title_place, with_escapes(page.title, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}}));
  return html;
}

}  // namespace foretrain
