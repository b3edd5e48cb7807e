// Resolved values of `predict --json` are valid scenarios with the same result.
#include "model/base/text.hpp"
#include "model/planning/plan_search.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// The value at "cluster.groups[1].node", made where there is none.
YamlNode& place_of(YamlNode& document, const std::string& path) {
  YamlNode* node = &document;
  for (const std::string& part : split(path, '.')) {
    const std::string key = part.substr(0, part.find('['));
    if (node->is_null()) *node = yaml_mapping(document.where);
    YamlEntry* entry = node->find(key);
    if (entry == nullptr) entry = &node->entries.emplace_back(YamlEntry{key, document.where, YamlNode{}});
    node = &entry->value;
    for (std::size_t at = part.find('['); at != std::string::npos; at = part.find('[', at + 1)) {
      node = &node->items.at(std::stoul(part.substr(at + 1)));
    }
  }
  return *node;
}

/// The document with all that holds stated in it.
YamlNode with_all_stated(const Scenario& scenario) {
  YamlNode document = scenario.where.document;
  for (const ResolvedSetting& one : resolved_values(scenario)) {
    YamlNode& value = place_of(document, one.key);
    const SourcePosition where = value.is_null() ? document.where : value.where;
    const bool plain = std::string_view("[{").find(one.value.front()) == std::string_view::npos;
    value = plain ? yaml_scalar(one.value, where) : parse_yaml(one.value, where.file);
    set_position(value, where);
  }
  return document;
}

double bytes_of(const Result& result) {
  return result.train() == nullptr ? 0.0 : result.train()->memory.total().value();
}

}  // namespace

TEST_CASE("Every resolved value of the catalogue's runs can be stated, and all together predict the same") {
  const auto step_time = [](const Scenario& one) { return predict(one, Fidelity::estimate, Detail::numbers).time(); };
  for (const CatalogueEntry& run : list_scenarios()) {
    INFO(run.name);
    YamlNode document = scenario_document(run.name);
    for (const std::string& chosen : auto_overrides(document, run.name, step_time, 1)) {
      apply_override(document, parse_override(chosen));
    }
    const Scenario scenario = read_scenario(std::move(document), run.name);
    try {
      const Result before = predict(scenario, Fidelity::estimate);
      const Result after = predict(read_scenario(with_all_stated(scenario), run.name), Fidelity::estimate);
      CHECK(estimated_time(scenario).value() == Approx(before.time().value()).epsilon(1e-12));
      CHECK(after.time().value() == Approx(before.time().value()).epsilon(1e-9));
      CHECK(bytes_of(after) == Approx(bytes_of(before)).epsilon(1e-9));
    } catch (const ScenarioError& error) {
      FAIL_CHECK(error.what());
    }
  }
}
