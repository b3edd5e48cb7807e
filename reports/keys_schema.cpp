#include "reports/keys_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/keys/key_tree.hpp"

namespace foretrain {

namespace {

using Json = nlohmann::ordered_json;
using keys::Form;
using keys::Key;
using keys::Mapping;

constexpr const char* decimal_number = "^[0-9]*\\.?[0-9]+([eE][+-]?[0-9]+)?$";

/// A number, a blank or none, and one of the units.
std::string quantity_pattern(std::string_view unit) {
  std::string units;
  for (const std::string& known : family_of(unit).units) units += (units.empty() ? "" : "|") + known;
  if (unit.ends_with("bit/s")) units += "|[kMGT]?bps";
  return fmt::format("^[0-9]*\\.?[0-9]+([eE][+-]?[0-9]+)? ?({})$", units);
}

class SchemaWriter {
 public:
  explicit SchemaWriter(const NamesOf& names_in) : names_in_(names_in) {}

  std::string write(const keys::FileKind& file) {
    Json forms = Json::array();
    for (const Mapping* table : file.tables) {
      const bool preset = table == &keys::model;
      forms.push_back(of_mapping({.kind = preset ? Form::Kind::name : Form::Kind::mapping, .mapping = table}));
    }
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"title", fmt::format("foretrain: {}", file.word)},
                   {"anyOf", std::move(forms)}};
    schema["definitions"] = std::move(definitions_);
    return schema.dump(1) + "\n";
  }

 private:
  /// A reference to the mapping's definition, which is made where there is none.
  Json of_mapping(const Form& form) {
    std::string name(form.mapping->name);
    std::ranges::replace(name, ' ', '_');
    if (form.kind == Form::Kind::name) name += "_or_changes";
    const Json reference = {{"$ref", "#/definitions/" + name}};
    if (!begun_.insert(name).second) return reference;
    Json definition = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
    const bool whole = form.kind == Form::Kind::mapping && form.mapping->variants.empty();
    for (const Key* key : keys::keys_of(form, "")) {
      const std::string word(key->name);
      Json value = of_key(*key);
      Json& properties = definition["properties"];
      if (properties.contains(word)) {  // of two variants
        Json either = Json::array();
        either.push_back(properties[word]);
        either.push_back(std::move(value));
        value = Json::object();
        value["anyOf"] = std::move(either);
      }
      properties[word] = std::move(value);
      if (whole && key->needed()) definition["required"].push_back(word);
    }
    definitions_[name] = std::move(definition);
    return reference;
  }

  Json of_key(const Key& key) {
    Json forms = Json::array();
    for (const Form& form : key.value.forms()) {
      const bool scalar_too = form.shape == Form::Shape::one_or_list;
      if (scalar_too) forms.push_back(of_form(form));
      Json inner = of_form(form);
      switch (form.shape) {
        case Form::Shape::list_of_lists:
          inner = {{"type", "array"}, {"items", std::move(inner)}};
          [[fallthrough]];
        case Form::Shape::list:
        case Form::Shape::one_or_list:
          inner = {{"type", "array"}, {"items", std::move(inner)}};
          break;
        case Form::Shape::by_name:
          inner = {{"type", "object"}, {"additionalProperties", std::move(inner)}};
          break;
        case Form::Shape::one:
          break;
      }
      forms.push_back(std::move(inner));
    }
    join_lists(forms);
    std::string description(key.meaning);
    if (!key.usual.empty()) description += fmt::format(" Without it: {}.", key.usual);
    if (!key.together.empty()) description += fmt::format(" {}", key.together);
    Json schema = {{"description", std::move(description)}};
    if (forms.size() == 1 && !forms[0].contains("$ref")) {
      schema.update(forms[0]);
    } else {
      schema["anyOf"] = std::move(forms);  // beside $ref nothing counts
    }
    return schema;
  }

  /// Items of one list may have different forms.
  static void join_lists(Json& forms) {
    Json items = Json::array(), others = Json::array();
    for (Json& form : forms) {
      const bool list = form.contains("type") && form["type"] == "array";
      (list ? items : others).push_back(list ? form["items"] : form);
    }
    if (items.size() < 2) return;
    others.push_back({{"type", "array"}, {"items", {{"anyOf", std::move(items)}}}});
    forms = std::move(others);
  }

  Json of_form(const Form& form) {
    switch (form.kind) {
      case Form::Kind::whole:
        return {{"type", {"integer", "string"}}, {"pattern", "^[0-9]+$"}};
      case Form::Kind::number:
        return {{"type", {"number", "string"}}, {"pattern", decimal_number}};
      case Form::Kind::flag:
        return {{"type", "boolean"}};
      case Form::Kind::word:
        return {{"enum", form.words}};
      case Form::Kind::quantity:
        return {{"type", "string"}, {"pattern", quantity_pattern(form.unit)}};
      case Form::Kind::text:
        return {{"type", {"string", "number", "boolean"}}};
      case Form::Kind::mapping:
        return of_mapping(form);
      case Form::Kind::name:
        break;
    }
    Json name = {{"type", "string"}};
    if (const std::vector<std::string> known = names_in_(form.catalogue); !known.empty()) name["examples"] = known;
    return form.mapping == nullptr ? name : Json{{"anyOf", {std::move(name), of_mapping(form)}}};
  }

  const NamesOf& names_in_;
  std::set<std::string> begun_;
  Json definitions_ = Json::object();
};

}  // namespace

std::string keys_schema(const keys::FileKind& file, const NamesOf& names_in) {
  return SchemaWriter(names_in).write(file);
}

}  // namespace foretrain
