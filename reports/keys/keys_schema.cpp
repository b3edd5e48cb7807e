#include "reports/keys/keys.hpp"

#include <fmt/ranges.h>

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
  std::string units = fmt::format("{}", fmt::join(family_of(unit).units, "|"));
  if (unit.ends_with("bit/s")) units += "|[kMGT]?bps";
  return fmt::format("^[0-9]*\\.?[0-9]+([eE][+-]?[0-9]+)? ?({})$", units);
}

/// The mapping of an accepted name.
const Mapping* mapping_at(std::string_view dotted_key) {
  if (dotted_key == "plan") return &keys::plan;
  return dotted_key == "plan.sync" ? &keys::sync : &keys::train;
}

/// Whether files of this kind may be a preset with changes.
bool takes_preset(const Mapping& table) {
  return &table == &keys::model || &table == &keys::node || &table == &keys::gpu;
}

class SchemaWriter {
 public:
  explicit SchemaWriter(const NamesOf& names_in) : names_in_(names_in) {}

  std::string write(const keys::FileKind& file) {
    for (const Mapping* table : file.tables) find_partial(*table, false);
    Json forms = Json::array();
    for (const Mapping* table : file.tables) {
      forms.push_back(
          of_mapping({.kind = takes_preset(*table) ? Form::Kind::name : Form::Kind::mapping, .mapping = table}));
    }
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"title", fmt::format("foretrain: {}", file.word)},
                   {"anyOf", std::move(forms)}};
    schema["definitions"] = std::move(definitions_);
    return schema.dump(1) + "\n";
  }

 private:
  /// Below a key whose value may be a preset with changes, mappings need none of their keys.
  void find_partial(const Mapping& mapping, bool below_preset) {
    auto& known = below_preset ? partial_ : complete_;
    if (!known.insert(&mapping).second) return;
    const auto descend = [&](const Mapping& table) {
      for (const Key& key : table.keys) {
        for (const Form& form : key.value.forms()) {
          const bool partial = below_preset || takes_preset(table) || form.kind == Form::Kind::name;
          if (form.mapping != nullptr) find_partial(*form.mapping, partial);
        }
      }
    };
    descend(mapping);
    for (const keys::Variant& variant : mapping.variants) descend(*variant.keys);
  }

  /// A reference to the mapping's definition, which is made where there is none; with a variant's word, to that of the
  /// keys beside it.
  Json of_mapping(const Form& form, std::string_view variant = "") {
    std::string name(form.mapping->name);
    std::ranges::replace(name, ' ', '_');
    if (form.kind == Form::Kind::name) name += "_or_changes";
    if (!variant.empty()) name += fmt::format("_{}", variant);
    Json reference = {{"$ref", "#/definitions/" + name}};
    if (!begun_.insert(name).second) return reference;
    Json needed = Json::object();
    Json definition = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
    const bool whole = !partial_.contains(form.mapping) && form.mapping->variants.empty();
    for (const Key* key : keys::keys_of(form, variant)) {
      const std::string word(key->name);
      if (!variant.empty() && word == form.mapping->decides) continue;
      Json value = of_key(*key);
      Json& properties = definition["properties"];
      if (properties.contains(word)) {  // of two variants
        Json either = Json::array();
        either.push_back(properties[word]);
        either.push_back(std::move(value));
        value = Json::object();
        value["anyOf"] = std::move(either);
      }
      for (const keys::AcceptedName& accepted : keys::accepted_names()) {
        const bool here = word == accepted.ours && form.mapping == mapping_at(accepted.mapping);
        if (here) properties[std::string(accepted.theirs)] = value;
      }
      properties[word] = std::move(value);
      if (whole && key->needed()) needed["required"].push_back(word);
    }
    const bool work = form.mapping == &keys::run || form.mapping == &keys::operation;
    if (work && variant.empty()) add_by_name(form, definition["properties"]);
    if (!needed.empty() && takes_preset(*form.mapping)) {
      definition["anyOf"] = {std::move(needed), {{"required", {"preset"}}}};
    } else {
      definition.update(needed);
    }
    definitions_[name] = std::move(definition);
    return reference;
  }

  /// { matmul: { … } } beside { kind: matmul, … }; a pause may be its time alone.
  void add_by_name(const Form& form, Json& properties) {
    std::set<std::string> named;
    for (const keys::Variant& variant : form.mapping->variants) {
      for (const std::string& word : split_words(variant.words)) {
        if (!named.insert(word).second) continue;
        Json choices = Json::array({of_mapping(form, word)});
        if (properties.contains(word)) choices.push_back(properties[word]);
        if (word == "sleep") choices.push_back({{"type", "string"}});
        properties[word] = any_of(std::move(choices));
      }
    }
  }

  Json of_key(const Key& key) {
    Json choices = Json::array();
    const std::span<const Form> forms = key.value.forms();
    for (std::size_t i = 0; i < forms.size();) {
      Json same = Json::array();  // of forms that have one shape
      const Form::Shape shape = forms[i].shape;
      for (; i < forms.size() && forms[i].shape == shape; ++i) same.push_back(of_form(forms[i]));
      add_shaped(choices, any_of(std::move(same)), shape);
    }
    std::string description(key.meaning);
    if (const std::string usual = usual_of(key); !usual.empty()) description += fmt::format(" Without it: {}.", usual);
    if (!key.together.empty()) description += fmt::format(" {}", key.together);
    for (const keys::AcceptedValue& accepted : keys::accepted_values()) {
      const bool here = accepted.key.ends_with(fmt::format(".{}", key.name)) &&
                        std::ranges::find(forms[0].words, accepted.ours) != forms[0].words.end();
      if (here) choices.push_back({{"const", accepted.theirs}});
    }
    Json schema = {{"description", std::move(description)}};
    if (choices.size() == 1 && !choices[0].contains("$ref")) {
      schema.update(choices[0]);
    } else {
      schema["anyOf"] = std::move(choices);  // beside $ref nothing counts
    }
    return schema;
  }

  static Json any_of(Json choices) {
    if (choices.size() == 1) return choices[0];
    Json schema = Json::object();
    schema["anyOf"] = std::move(choices);
    return schema;
  }

  static Json list_of(Json items) {
    Json schema = {{"type", "array"}};
    schema["items"] = std::move(items);
    return schema;
  }

  /// Adds what values of this shape may be, each of whose parts is as `one` says.
  static void add_shaped(Json& choices, Json one, Form::Shape shape) {
    switch (shape) {
      case Form::Shape::list_of_lists:
        choices.push_back(list_of(list_of(std::move(one))));
        return;
      case Form::Shape::list:
        choices.push_back(list_of(std::move(one)));
        return;
      case Form::Shape::by_name: {
        Json schema = {{"type", "object"}};
        schema["additionalProperties"] = std::move(one);
        choices.push_back(std::move(schema));
        return;
      }
      case Form::Shape::one_or_list:
        choices.push_back(list_of(one));
        [[fallthrough]];
      case Form::Shape::one:
        choices.push_back(std::move(one));
    }
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
  std::set<const Mapping*> partial_, complete_;
  std::set<std::string> begun_;
  Json definitions_ = Json::object();
};

}  // namespace

std::string keys_schema(const keys::FileKind& file, const NamesOf& names_in) {
  return SchemaWriter(names_in).write(file);
}

}  // namespace foretrain
