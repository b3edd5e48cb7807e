#include "model/scenario/keys/key_tree.hpp"

#include <deque>
#include <map>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/scenario/keys/member.hpp"

namespace foretrain::keys {

namespace {

constexpr Key preset_key = {"preset", text, "", "A catalogue name or a file; other keys override its values."};
constexpr Key hf_key = {"hf", text, "", "A Hugging Face config.json; other keys override its values."};

/// Whether one of the words, separated by blanks, is this one.
bool has_word(std::string_view words, std::string_view word) {
  return !word.empty() && std::ranges::count(split_words(words), word) > 0;
}

/// "kind: matmul or convolution", where a key of the mapping decides.
std::string condition_of(const Mapping& mapping, const Variant& variant) {
  const bool own = std::ranges::find(mapping.keys, mapping.decides, &Key::name) != mapping.keys.end();
  return own ? fmt::format("{}: {}", mapping.decides, or_list(split_words(variant.words), 4)) : "";
}

/// Part of the path that a form adds below it.
std::string path_below(const std::string& path, const Form& form) {
  using enum Form::Shape;
  if (form.shape == by_name) return path + ".NAME";
  return form.shape == list || form.shape == list_of_lists ? path + "[]" : path;
}

/// `preset`, which stands beside any keys of what the catalogue has, and `hf` of models.
std::vector<const Key*> keys_beside(const Form& form) {
  if (form.kind != Form::Kind::name || form.mapping == nullptr) return {};
  return form.mapping == &model ? std::vector{&preset_key, &hf_key} : std::vector{&preset_key};
}

/// The places of one kind of file.
class Walk {
 public:
  explicit Walk(Repeats repeats) : repeats_(repeats) {}

  std::vector<Place> through(const FileKind& file) && {
    if (repeats_ == Repeats::left_out) find_first_places(file);
    for (const Mapping* table : file.tables) {
      Form form{.kind = Form::Kind::mapping, .mapping = table};
      if (table == &model || table == &node || table == &gpu) form.kind = Form::Kind::name;  // may have a preset
      into(form, "", file.tables.size() > 1 ? std::string(table->name) : "");
    }
    return std::move(places_);
  }

 private:
  /// Each mapping is described at the shortest of its paths.
  void find_first_places(const FileKind& file) {
    std::deque<std::pair<const Mapping*, std::string>> next;
    for (const Mapping* table : file.tables) next.emplace_back(table, "");
    for (; !next.empty(); next.pop_front()) {
      const auto [mapping, path] = next.front();
      if (!first_.emplace(mapping, path).second) continue;
      for (const Key& key : mapping->keys) {
        for (const Form& form : key.value.forms()) {
          if (form.mapping != nullptr) next.emplace_back(form.mapping, path_below(joined(path, key), form));
        }
      }
      for (const Variant& variant : mapping->variants) next.emplace_back(variant.keys, path);
    }
  }

  static std::string joined(const std::string& path, const Key& key) {
    return path.empty() ? std::string(key.name) : fmt::format("{}.{}", path, key.name);
  }

  void into(const Form& form, const std::string& path, const std::string& when) {
    const Mapping* mapping = form.mapping;
    if (mapping == nullptr || std::ranges::find(open_, mapping) != open_.end()) return;
    if (repeats_ == Repeats::left_out && first_.at(mapping) != path) return;
    open_.push_back(mapping);
    tell(*mapping, path, when);
    for (const Variant& variant : mapping->variants) {
      const std::string condition = condition_of(*mapping, variant);
      tell(*variant.keys, path, condition.empty() ? when : condition);
    }
    for (const Key* key : keys_beside(form)) places_.push_back({joined(path, *key), key, ""});
    open_.pop_back();
  }

  void tell(const Mapping& mapping, const std::string& path, const std::string& when) {
    for (const Key& key : mapping.keys) {
      const std::string own = joined(path, key);
      places_.push_back({own, &key, when});
      for (const Form& form : key.value.forms()) into(form, path_below(own, form), "");
    }
  }

  Repeats repeats_;
  std::map<const Mapping*, std::string> first_;
  std::vector<const Mapping*> open_;
  std::vector<Place> places_;
};

std::string describe(const Form& form) {
  if (form.kind == Form::Kind::word) return or_list({form.words.begin(), form.words.end()}, form.words.size());
  if (form.kind == Form::Kind::quantity) return fmt::format("{} ({})", family_of(form.unit).what, form.unit);
  if (form.kind == Form::Kind::name) {
    return fmt::format("a {}'s name{}", row_of(form.catalogue).noun, form.mapping != nullptr ? " or a mapping" : "");
  }
  return form.kind == Form::Kind::whole    ? "an integer"
         : form.kind == Form::Kind::number ? "a number"
         : form.kind == Form::Kind::flag   ? "true or false"
         : form.kind == Form::Kind::text   ? "a string"
                                           : "a mapping";
}

/// The same of several forms that have the same shape.
std::string in_shape(std::string text, Form::Shape shape) {
  using enum Form::Shape;
  if (shape == one) return text;
  if (shape == one_or_list) return text + ", or a list of such";
  return (shape == list            ? "a list, each "
          : shape == list_of_lists ? "a list of lists, each "
                                   : "names, each with ") +
         text;
}

/// Whether a text may be the key's value in this form. Of texts and names only their readers know which there are:
/// single words are.
bool is_of(const std::string& text, const Form& form, const Key& key) {
  const bool of_lists = text.starts_with('[');
  if (of_lists || form.shape == Form::Shape::list_of_lists || form.shape == Form::Shape::by_name) return of_lists;
  try {
    switch (form.kind) {
      case Form::Kind::whole:
        return parse_integer(text, key.range.minimum, key.range.maximum) >= key.range.minimum;
      case Form::Kind::number:
        return parse_number(text) >= 0.0;
      case Form::Kind::flag:
        return parse_flag(text) || true;
      case Form::Kind::word:
        return std::ranges::count(form.words, text) > 0;
      case Form::Kind::quantity:
        return std::ranges::count(family_of(form.unit).units, split_number_and_unit(text).unit) > 0;
      case Form::Kind::name:
        return text != "none" && !key.needed() && text.find(' ') == std::string::npos;
      case Form::Kind::text:
        return key.member.set != nullptr && !text.empty() && text.find(' ') == std::string::npos;
      case Form::Kind::mapping:
        return false;
    }
  } catch (const UnitError&) {
  }
  return false;
}

void add_framework_keys(const Mapping& mapping, const std::string& path, std::vector<FrameworkKey>& all) {
  for (const Key& key : mapping.keys) {
    const std::string name = fmt::format("{}.{}", path, key.name);
    if (key.framework != nullptr) all.push_back({path, name, &key});
    if (key.member.part == nullptr) continue;
    for (const Form& form : key.value.forms()) {
      if (form.mapping != nullptr) add_framework_keys(*form.mapping, name, all);
    }
  }
}

}  // namespace

const CatalogueRow& row_of(Catalogue catalogue) {
  static constexpr CatalogueRow rows[] = {{"preset"},
                                          {"machine", "node", "hardware", "foretrain hardware list"},
                                          {"GPU", "GPU", "hardware/gpus", "foretrain hardware list"},
                                          {"fabric", "fabric", "hardware/fabrics", "foretrain hardware list"},
                                          {"model", "model", "models", "foretrain models list"},
                                          {"scenario", "scenario", "runs", "foretrain scenarios list"},
                                          {"calibration", "calibration", "calibrations"},
                                          {"framework", "framework", "frameworks", "foretrain frameworks list"},
                                          {"NIC"},
                                          {"processor", "microarchitecture", "hardware/processors"},
                                          {"storage"},
                                          {"link"},
                                          {"bucket rule"}};
  return rows[static_cast<std::size_t>(catalogue)];
}

const Mapping& table_of(const Key& key) {
  for (const Form& form : key.value.forms()) {
    if (form.mapping != nullptr) return *form.mapping;
  }
  throw InternalError(fmt::format("the value of {} is no mapping", key.name));
}

const Mapping& variant_of(const Mapping& mapping, std::string_view word) {
  const auto has = [&](const Variant& variant) { return has_word(variant.words, word); };
  return *std::ranges::find_if(mapping.variants, has)->keys;
}

const Key& key_of(const Mapping& mapping, std::string_view name) {
  const auto found = std::ranges::find(mapping.keys, name, &Key::name);
  if (found == mapping.keys.end()) throw InternalError(fmt::format("{} has no key {}", mapping.name, name));
  return *found;
}

const std::vector<FrameworkKey>& framework_keys() {
  static const std::vector<FrameworkKey> all = [] {
    std::vector<FrameworkKey> found;
    add_framework_keys(plan, "plan", found);
    add_framework_keys(train, "workload.train", found);
    std::ranges::stable_partition(found, [](const FrameworkKey& key) { return key.row->framework->decides_others; });
    return found;
  }();
  return all;
}

std::vector<const Key*> keys_of(const Form& form, std::string_view word) {
  std::vector<const Key*> known;
  const auto add = [&](const Mapping& mapping) {
    for (const Key& key : mapping.keys) known.push_back(&key);
  };
  add(*form.mapping);
  const auto chosen = [&](const Variant& variant) { return has_word(variant.words, word); };
  const bool chooses = std::ranges::any_of(form.mapping->variants, chosen);
  for (const Variant& variant : form.mapping->variants) {
    if (!chooses || chosen(variant)) add(*variant.keys);
  }
  for (const Key* key : keys_beside(form)) known.push_back(key);
  return known;
}

std::vector<Place> places(const FileKind& file, Repeats repeats) { return Walk(repeats).through(file); }

std::vector<std::string> dotted_keys() {
  std::vector<std::string> all;
  for (const Place& place : places(files().front(), Repeats::listed)) {
    if (place.path.find("[]") != std::string::npos || place.path.find("NAME") != std::string::npos) continue;
    if (std::ranges::find(all, place.path) == all.end()) all.push_back(place.path);
  }
  return all;
}

std::vector<std::string> words_of(std::string_view dotted_key) {
  std::vector<std::string> words;
  static constexpr std::string_view of_flags[] = {"true", "false"};
  for (const Place& place : places(files().front(), Repeats::listed)) {
    if (place.path != dotted_key) continue;
    for (const Form& form : place.key->value.forms()) {
      for (const std::string_view word : form.kind == Form::Kind::flag ? std::span(of_flags) : form.words) {
        if (std::ranges::find(words, word) == words.end()) words.emplace_back(word);
      }
    }
  }
  return words;
}

std::string title_of(std::string_view dotted_key) {
  for (const Place& place : places(files().front(), Repeats::listed)) {
    if (place.path == dotted_key && !place.key->title.empty()) return std::string(place.key->title);
  }
  std::string word(dotted_key.substr(dotted_key.rfind('.') + 1));
  std::ranges::replace(word, '_', ' ');
  return word;
}

std::string usual_of(const Key& key) {
  return key.usual.empty() && key.member.written != nullptr ? key.member.written(nullptr, key) : std::string(key.usual);
}

std::string usual_value(const Key& key) {
  const std::string usual = usual_of(key);
  const auto forms = key.value.forms();
  return std::ranges::any_of(forms, [&](const Form& form) { return is_of(usual, form, key); }) ? usual : "";
}

bool Companion::suits(std::string_view value) const {
  if (!words.empty()) return std::ranges::find(words, value) != words.end();
  const bool is_none = value == "1" && usual_value(*key) == "1";  // experts
  return !value.empty() && value != "0" && !is_none && value != "false";
}

std::optional<Companion> companion_of(const Key& key, std::span<const Key* const> known) {
  const bool with = key.together.starts_with("With "), family = key.together.starts_with("Family ");
  if (!with && !family && key.together.find(": ") == std::string_view::npos) return std::nullopt;
  std::vector<std::string> words = split_words(to_lower(key.together));
  for (std::string& word : words) std::erase_if(word, [](char c) { return c == ',' || c == '.'; });
  if (std::ranges::find(words, "above") != words.end()) return std::nullopt;
  std::string other = words[with ? 1 : 0];
  std::erase(other, ':');
  const auto found = std::ranges::find(known, other, &Key::name);
  if (found == known.end()) return std::nullopt;
  words.erase(words.begin(), with ? words.end() : words.begin() + 1);
  std::erase(words, "or");
  return Companion{*found, std::move(words)};
}

std::string describe(const Value& value) {
  std::string text;
  const std::span<const Form> forms = value.forms();
  for (std::size_t i = 0; i < forms.size();) {
    std::string same;
    const Form::Shape shape = forms[i].shape;
    for (; i < forms.size() && forms[i].shape == shape; ++i) {
      same += (same.empty() ? "" : ", or ") + describe(forms[i]);
    }
    text += (text.empty() ? "" : ", or ") + in_shape(std::move(same), shape);
  }
  return text;
}

WordWithNumber parse_word_with_number(std::string_view text, int least) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) return {text, std::nullopt};
  const std::string_view inside = text.substr(open + 1);
  const auto number = inside.ends_with(')') ? number_behind(inside.substr(0, inside.size() - 1), "") : std::nullopt;
  if (!number || *number < least) {
    throw UnitError(fmt::format("\"{}\" is not a word with a number", text),
                    fmt::format("for example {}(4)", text.substr(0, open)));
  }
  return {text.substr(0, open), number};
}

double parse_length(std::string_view text) {
  constexpr double longest = 1e8;
  const double length = parse_number(text);
  if (length <= longest) return length;
  throw UnitError(fmt::format("{} is out of range", text), fmt::format("a number from 0 to {:.0f}", longest));
}

double parse_share(std::string_view text) {
  const bool percent = text.ends_with('%');
  return parse_number(percent ? trim(text.substr(0, text.size() - 1)) : text) * (percent ? 0.01 : 1.0);
}

double parse_share_below(std::string_view text, std::string_view what, std::string_view whole) {
  const double share = parse_share(text);
  if (share < 1.0) return share;
  throw UnitError(fmt::format("a {} of {}", what, text), fmt::format("less than 100 % of the {}, as 5 %", whole));
}

std::optional<std::string_view> our_name(std::string_view foreign) {
  struct ForeignNames {
    std::string_view ours, theirs;
  };
  static constexpr ForeignNames all[] = {
#define FOREIGN(ours, theirs) {ours, theirs},
#include "model/scenario/keys/foreign_names.def"
  };
  std::string word = to_lower(foreign);
  std::ranges::replace(word, '-', '_');
  const auto* const found = std::ranges::find_if(all, [&](const auto& row) { return has_word(row.theirs, word); });
  return found == std::end(all) ? std::nullopt : std::optional(found->ours);
}

std::span<const AcceptedName> accepted_names() {
  constexpr auto accepted = [](std::string_view theirs, std::string_view ours) {
    const std::size_t dot = ours.rfind('.');
    return AcceptedName{theirs, ours.substr(0, dot), ours.substr(dot + 1)};
  };
  static constexpr AcceptedName all[] = {
#define FOREIGN(ours, theirs)
#define ACCEPTED(ours, theirs) accepted(theirs, ours),
#include "model/scenario/keys/foreign_names.def"
  };
  return all;
}

std::span<const AcceptedValue> accepted_values() {
  static constexpr AcceptedValue all[] = {
#define FOREIGN(ours, theirs)
#define ACCEPTED_VALUE(key, theirs, ours) {key, theirs, ours},
#include "model/scenario/keys/foreign_names.def"
  };
  return all;
}

std::string current_name(std::string_view dotted_key) {
  for (const AcceptedName& name : accepted_names()) {
    const std::size_t end = name.mapping.size();
    if (dotted_key.size() == end + 1 + name.theirs.size() && dotted_key.starts_with(name.mapping) &&
        dotted_key[end] == '.' && dotted_key.ends_with(name.theirs)) {
      return fmt::format("{}.{}", name.mapping, name.ours);
    }
  }
  return std::string(dotted_key);
}

}  // namespace foretrain::keys
