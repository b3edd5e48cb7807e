#include "model/scenario/yaml_reader.hpp"

#include "model/base/session.hpp"
#include "model/base/text.hpp"
#include "model/scenario/document_walk.hpp"
#include "model/scenario/keys/key_tree.hpp"

namespace foretrain {

std::string join_path(std::string_view path, std::string_view key) {
  std::string joined(path);
  joined.reserve(path.size() + 1 + key.size());
  if (!path.empty()) joined += '.';
  return joined += key;
}

Field Field::within(const YamlNode& node, std::string path, const keys::Key* row) const {
  Field field(node, std::move(path));
  field.owned_ = owned_;
  field.row_ = row;
  return field;
}

Field Field::replaced(YamlNode&& node) const {
  Field field(std::move(node), path_);
  field.row_ = row_;
  return field;
}

Field Field::below(const YamlEntry& entry) const {
  const bool is_like_others = row_ != nullptr && row_->value.all[0].shape == keys::Form::Shape::by_name;
  return within(entry.value, join_path(path_, entry.key), is_like_others ? row_ : nullptr);
}

std::optional<Field> Field::find(std::string_view key) const {
  const YamlEntry* entry = node_->find(key);
  return entry == nullptr ? std::nullopt : std::optional(below(*entry));
}

Field Field::at(std::string_view key, std::string_view expected) const {
  if (std::optional<Field> value = find(key)) return *std::move(value);
  throw ScenarioError(where(), join_path(path_, key), "this key is missing", std::string(expected));
}

const std::string& Field::text() const {
  if (!node_->is_scalar()) fail(fmt::format("{} where a single value belongs", node_->kind_name()), "one value");
  return node_->scalar;
}

MappingReader Field::mapping(const keys::Mapping& table, std::string_view word) const {
  const YamlEntry* decides = node_->find(table.decides);
  return {*this, keys::keys_of({.kind = keys::Form::Kind::mapping, .mapping = &table},
                               decides != nullptr ? decides->value.scalar : word)};
}

MappingReader Field::mapping(std::string_view word) const {
  if (row_ == nullptr) throw InternalError(fmt::format("{} has no row", path_));
  return mapping(keys::table_of(*row_), word);
}

std::vector<Field> Field::list() const {
  if (!node_->is_sequence()) fail(fmt::format("{} where a list belongs", node_->kind_name()), "a list: [ … ]");
  std::vector<Field> fields;
  for (std::size_t i = 0; i < node_->items.size(); ++i) {
    fields.push_back(within(node_->items[i], fmt::format("{}[{}]", path_, i), row_));
  }
  return fields;
}

std::vector<Field> Field::list_or_one() const {
  if (node_->is_scalar()) return {*this};
  return list();
}

std::vector<Field> Field::values(const keys::Key& row) const {
  using Shape = keys::Form::Shape;
  const auto forms = row.value.forms();
  if (std::ranges::all_of(forms, [](const keys::Form& form) { return form.shape == Shape::one; })) return {*this};
  return forms.front().shape == Shape::list ? list() : list_or_one();
}

void Field::require_form() const {
  const keys::Form::Kind kind = row_->value.all[0].kind;
  if (kind == keys::Form::Kind::flag) static_cast<void>(as<bool>());
  if (kind == keys::Form::Kind::whole) static_cast<void>(as<std::int64_t>());
  if (kind == keys::Form::Kind::word) static_cast<void>(as<std::string>());
}

void Field::fail(std::string got, std::string expected) const {
  throw ScenarioError(where(), path_, std::move(got), std::move(expected));
}

MappingReader::MappingReader(const Field& field, std::vector<const keys::Key*> keys)
    : field_(field), keys_(std::move(keys)) {
  if (!field.is_mapping()) {
    std::vector<std::string> words;
    for (const keys::Key* key : keys_) words.emplace_back(key->name);
    field.fail(fmt::format("{} where a mapping belongs", field.node().kind_name()),
               fmt::format("a mapping with keys such as {}", or_list(words, 6)));
  }
  for (const YamlEntry& entry : field.node().entries) {
    const auto known = std::ranges::find(keys_, entry.key, &keys::Key::name);
    if (known == keys_.end()) {
      throw UnknownKeys(unknown_keys(field.node(), field.path(), keys_));
    }
    if (entry.value.is_null()) {
      throw ScenarioError(entry.where, join_path(field.path(), entry.key), "this key has no value",
                          "a value, or leave the key out");
    }
    if (!(*known)->together.empty() && entry.value.is_scalar()) require_companion(**known, field.below(entry));
  }
}

void MappingReader::require_companion(const keys::Key& key, const Field& value) const {
  if (key.framework != nullptr || key.ignored.front() != nullptr) return;
  const auto other = keys::companion_of(key, keys_);
  if (!other || other->key->framework != nullptr || value.text() == keys::usual_value(key)) return;
  const std::string_view name = other->key->name;
  const auto stated = field_.find(name);
  if (other->words.empty()) {
    const bool there = stated ? !stated->is_scalar() || other->suits(stated->text()) : false;
    value.fail_if(!there, "no effect without {0}", "add {0}, or leave the key out", name);
  } else {
    const std::string own = !stated ? keys::usual_value(*other->key) : stated->is_scalar() ? stated->text() : "";
    // The value's own reader refuses unknown words.
    const auto allows = [&](const keys::Form& form) {
      return form.words.empty() || std::ranges::find(form.words, own) != form.words.end();
    };
    const bool known = std::ranges::any_of(other->key->value.forms(), allows);
    const std::string words = or_list(other->words);
    value.fail_if(known && !own.empty() && !other->suits(own), "no effect with {0}: {1}",
                  "{0}: {2}, or leave the key out", name, own, words);
  }
}

const keys::Key& MappingReader::row_of(std::string_view key) const {
  const auto known = std::ranges::find(keys_, key, &keys::Key::name);
  if (known == keys_.end()) throw InternalError(fmt::format("key {} was not announced", path(key)));
  if (auto* asked = session().part_if_there<AskedKeys>()) asked->keys.insert(*known);
  return **known;
}

bool MappingReader::has(std::string_view key) const {
  static_cast<void>(row_of(key));
  return field_.node().find(key) != nullptr;
}

Field MappingReader::operator[](std::string_view key) const {
  const keys::Key& row = row_of(key);
  Field value = field_.at(key);
  value.row_ = &row;
  return value;
}

std::optional<Field> MappingReader::find(std::string_view key) const {
  const keys::Key& row = row_of(key);
  std::optional<Field> value = field_.find(key);
  if (value) value->row_ = &row;
  return value;
}

std::vector<Field> MappingReader::list(std::string_view key) const {
  const std::optional<Field> stated = find(key);
  return stated ? stated->values() : std::vector<Field>();
}

SourcePosition MappingReader::where(std::string_view key) const {
  const YamlEntry* entry = field_.node().find(key);
  return entry != nullptr ? entry->value.where : field_.where();
}

std::string MappingReader::path(std::string_view key) const { return join_path(field_.path(), key); }

void Field::fill(const keys::Key& key, void* record) const {
  const keys::Member& member = key.member;
  if (member.part != nullptr && (is_mapping() || member.set == nullptr)) {
    mapping(keys::table_of(key)).fill(member.part(record));
    return;
  }
  const std::vector<Field> items = values(key);
  fail_if(items.empty(), "an empty list", "at least one value, or leave the key out");
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].parse([&](const std::string& text) { member.set(record, text, key, i); });
  }
}

void MappingReader::fill(const keys::Record& record) const {
  auto* const asked = session().part_if_there<AskedKeys>();
  for (const keys::Key* key : keys_) {
    if (key->member.record != record.type) continue;
    if (asked != nullptr) asked->keys.insert(key);
    if (key->needed()) {
      field_.at(key->name).fill(*key, record.record);
    } else if (const YamlEntry* entry = field_.node().find(key->name)) {
      field_.below(*entry).fill(*key, record.record);
    }
  }
}

void MappingReader::refuse(std::initializer_list<std::string_view> keys, std::string_view got,
                           std::string_view expected) const {
  for (const std::string_view key : keys) {
    fail_if(has(key), key, got, expected);
  }
}

void MappingReader::fail(std::string_view key, std::string got, std::string expected) const {
  throw ScenarioError(where(key), path(key), std::move(got), std::move(expected));
}

}  // namespace foretrain
