#include "reports/keys/keys.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

using keys::Form;
using keys::Key;
using keys::Place;
using keys::Repeats;

/// The key's place in one kind of file.
struct PlacedKey {
  std::string_view file;
  Place place;
};

/// Keys below the prefix, or all. Leaves out keys of an earlier kind of file, with repeats.
std::vector<PlacedKey> placed_keys(Repeats repeats, std::string_view prefix = "") {
  std::vector<PlacedKey> found;
  std::set<const Key*> before;
  for (const keys::FileKind& file : keys::files()) {
    std::vector<const Key*> own;
    std::set<std::pair<std::string, const Key*>> known;
    for (Place& place : keys::places(file, repeats)) {
      own.push_back(place.key);
      if (repeats == Repeats::left_out && before.contains(place.key)) continue;
      const bool inside = prefix.empty() || place.path == prefix ||
                          place.path.starts_with(fmt::format("{}.", prefix)) ||
                          place.path.starts_with(fmt::format("{}[]", prefix));
      if (inside && known.emplace(place.path, place.key).second) found.push_back({file.word, std::move(place)});
    }
    before.insert(own.begin(), own.end());
  }
  return found;
}

/// The same without repeats; with them where the prefix names a repeat.
std::vector<PlacedKey> listed_keys(std::string_view prefix) {
  std::vector<PlacedKey> found = placed_keys(Repeats::left_out, prefix);
  return found.empty() ? placed_keys(Repeats::listed, prefix) : found;
}

std::string without(const Key& key) {
  const std::string usual = usual_of(key);
  if (key.needed()) return "required";
  return usual.empty() ? "–" : usual;
}

std::string_view last_word(std::string_view path) { return path.substr(path.rfind('.') + 1); }

/// "tasks[2].run" as the tables have it: "tasks[].run"; the printed "sequence parallel" as "sequence_parallel".
std::string without_numbers(std::string_view path) {
  std::string text;
  bool inside = false;
  for (const char c : path) {
    if (c == ']') inside = false;
    if (!inside) text += c == ' ' ? '_' : c;
    if (c == '[') inside = true;
  }
  return text;
}

void add_line(std::string& text, std::string_view what, const std::string& reported) {
  if (reported.empty()) return;
  text += fmt::format("  {:<10} {}\n", what, wrap(reported, page_width() - 13, 13));
}

/// Meaning of one value of some keys; if `word` is empty, flags of all values in other programs.
struct ValueMeaning {
  std::string_view keys, word, meaning;
};
constexpr ValueMeaning value_meanings[] = {
#define VALUE(path, word, meaning) {path, word, meaning},
#include "reports/keys/value_meanings.def"
};

void add_value_meanings(std::string& text, const std::vector<std::string>& paths) {
  TextTable values("ll");
  bool any = false;
  for (const auto& [keys, word, meaning] : value_meanings) {
    const std::vector<std::string> of = split_words(keys);
    if (std::ranges::find_first_of(paths, of) == paths.end()) continue;
    if (word.empty()) {
      add_line(text, "flags", std::string(meaning));
    } else {
      values.add_row({std::string(word), std::string(meaning)});
      any = true;
    }
  }
  if (any) text += values.text(4);
}

/// The keys below a key; a few with their meanings.
void add_keys_below(std::string& text, const Form& form) {
  constexpr std::size_t few = 6;
  std::vector<std::string> words;
  TextTable table("ll");
  for (const Key* key : keys::keys_of(form, "")) {
    if (std::ranges::find(words, key->name) != words.end()) continue;
    words.emplace_back(key->name);
    table.add_row({words.back(), std::string(key->meaning)});
  }
  if (words.size() > few) return add_line(text, "its keys", fmt::format("{}", fmt::join(words, ", ")));
  text += "  its keys\n" + table.text(4);
}

std::string page_of(const PlacedKey& placed, const std::vector<std::string>& paths) {
  const Key& key = *placed.place.key;
  std::string text;
  for (const std::string& path : paths) text += path + "\n";
  if (placed.file != keys::files().front().word) text += fmt::format("(in a {} file)\n", placed.file);
  text += fmt::format("  {}\n", wrap(key.meaning, page_width() - 2, 2));
  constexpr std::int64_t small = 1000;
  const bool bounded = key.range.maximum < small && key.value.forms().front().kind == Form::Kind::whole;
  add_line(text, "value",
           describe(key.value) + (bounded ? fmt::format("; {} to {}", key.range.minimum, key.range.maximum) : ""));
  add_value_meanings(text, paths);
  constexpr std::string_view needed = "needed";
  if (key.usual.starts_with(needed)) {
    const std::string_view where = key.usual.substr(needed.size());
    add_line(text, "required", where.empty() ? "always" : std::string(where.substr(where.find_first_not_of(", "))));
  } else {
    add_line(text, "default", usual_of(key));
  }
  add_line(text, "condition", std::string(key.together));
  add_line(text, "only with", placed.place.when);
  for (const Form& form : key.value.forms()) {
    if (form.kind == Form::Kind::quantity) {
      add_line(text, "units", fmt::format("{}", fmt::join(family_of(form.unit).units, ", ")));
    }
    if (const std::string_view list = keys::row_of(form.catalogue).listing; !list.empty()) {
      add_line(text, "names", fmt::format("`{}`", list));
    }
    if (form.mapping != nullptr) add_keys_below(text, form);
  }
  return text;
}

/// One page for each key, however many places it has.
std::optional<std::string> pages_of(const std::vector<PlacedKey>& found) {
  if (found.empty()) return std::nullopt;
  std::vector<const Key*> reported;
  std::string text;
  for (const PlacedKey& placed : found) {
    if (std::ranges::find(reported, placed.place.key) != reported.end()) continue;
    reported.push_back(placed.place.key);
    std::vector<std::string> paths;
    for (const PlacedKey& other : found) {
      if (other.place.key == placed.place.key && paths.size() < 6) paths.push_back(other.place.path);
    }
    text += (text.empty() ? "" : "\n") + page_of(placed, paths);
  }
  return text;
}

bool has_value(const Place& place, std::string_view word) {
  return std::ranges::any_of(place.key->value.forms(),
                             [&](const Form& form) { return std::ranges::find(form.words, word) != form.words.end(); });
}

/// "plan.zero" of "plan.zero: 3" and of "plan.zero x …"; empty where no key is named first.
std::string key_in(std::string_view ours) { return std::string(ours.substr(0, ours.find_first_of(":, "))); }

/// The heading of a key: the key that it stands below, or the variant that has it.
std::string heading_of(const Place& place) {
  const std::size_t own = place.key->name.size();  // may have dots of its own
  return place.path.size() == own ? place.when : place.path.substr(0, place.path.size() - own - 1);
}

/// "integer; default 1".
std::string value_in_brackets(const Key& key) {
  std::string value = describe(key.value);
  value.erase(0, value.starts_with("an ") ? 3 : value.starts_with("a ") ? 2 : 0);
  if (key.needed()) return value + "; required";
  const std::string usual = usual_of(key);
  if (usual.empty() || usual == "none" || usual == "nothing") return value;
  if (value == "true or false") return "default " + usual;
  return fmt::format("{}; {}{}", value, usual.starts_with("needed") ? "" : "default ", usual);
}

/// A list of keys. Neighbours that differ in nothing but their names share a line; the variant that has the keys below
/// it has one of its own.
class MarkdownList {
 public:
  void add(const Place& place) {
    std::string text = fmt::format(" ({}): {}", value_in_brackets(*place.key), place.key->meaning);
    if (!place.key->together.empty()) text += fmt::format(" ({})", place.key->together);
    const std::string when = place.when == heading_of(place) ? "" : place.when;
    if (when != when_) lines_ += text_ + fmt::format("\n\n**{}**\n", when.empty() ? "always" : when);
    if (when == when_ && text == text_) {
      lines_ += fmt::format(", `{}`", place.key->name);
    } else {
      lines_ += (when == when_ ? text_ : "") + fmt::format("\n- `{}`", place.key->name);
    }
    when_ = when;
    text_ = text;
  }
  /// A mapping whose keys stand below another heading as well.
  void add_reference(const std::string& heading) {
    if (std::ranges::find(others_, heading) == others_.end()) others_.push_back(heading);
  }
  [[nodiscard]] std::string text() const {
    std::string text = lines_ + text_ + "\n";
    for (const std::string& other : others_) text += fmt::format("\nFurther keys: as below `{}`.\n", other);
    return text;
  }

 private:
  std::string lines_, when_, text_;  ///< the last key's text behind its names
  std::vector<std::string> others_;
};

/// Reference to the keys of a file that also stand in a scenario.
std::string told_before(const std::vector<PlacedKey>& all, const keys::FileKind& file) {
  std::string text;
  for (const keys::Mapping* table : file.tables) {
    const auto leads_there = [&](const PlacedKey& placed) {
      const auto forms = placed.place.key->value.forms();
      return placed.file != file.word && std::ranges::find(forms, table, &Form::mapping) != forms.end();
    };
    const auto first = std::ranges::find_if(all, leads_there);
    if (first == all.end()) continue;
    text += fmt::format("{}{} has the keys below `{}`", text.empty() ? "\n" : ", ", table->name, first->place.path);
  }
  return text.empty() ? text : text + ".\n";
}

/// A list for each heading, in the order in which they come first.
void add_sections(std::string& text, const std::vector<PlacedKey>& all, std::string_view file) {
  std::vector<std::pair<std::string, MarkdownList>> sections;
  std::map<const Key*, std::string> first_heading;
  for (const PlacedKey& placed : all) {
    if (placed.file != file) continue;
    const std::string heading = heading_of(placed.place);
    auto section = std::ranges::find(sections, heading, &std::pair<std::string, MarkdownList>::first);
    if (section == sections.end()) section = sections.insert(section, {heading, {}});
    const std::string& first = first_heading.try_emplace(placed.place.key, heading).first->second;
    first == heading ? section->second.add(placed.place) : section->second.add_reference(first);
  }
  for (const auto& [heading, list] : sections) {
    if (!heading.empty()) text += fmt::format("\n### {}\n", heading);
    text += list.text();
  }
}

}  // namespace

std::string keys_text(std::string_view prefix) {
  constexpr int indent = 4;
  std::string text;
  for (const PlacedKey& placed : listed_keys(prefix)) {
    const Key& key = *placed.place.key;
    std::string reported = fmt::format("{} Value: {}", key.meaning, describe(key.value));
    if (const std::string usual = without(key); !usual.empty())
      reported += fmt::format("; {}{}", key.needed() ? "" : "default: ", usual);
    text += fmt::format("{}\n{:{}}{}\n", placed.place.path, "", indent, wrap(reported, page_width() - indent, indent));
  }
  return text;
}

std::string keys_json(std::string_view prefix) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const PlacedKey& placed : listed_keys(prefix)) {
    const Key& key = *placed.place.key;
    nlohmann::ordered_json one = {{"key", placed.place.path}, {"file", placed.file}, {"value", describe(key.value)}};
    for (const Form& form : key.value.forms()) {
      for (const std::string_view word : form.words) one["words"].push_back(word);
      if (!form.unit.empty()) one["unit"] = form.unit;
    }
    one["needed"] = key.needed();
    if (const std::string usual = usual_of(key); !usual.empty() && !key.needed()) one["default"] = usual;
    one["meaning"] = key.meaning;
    if (!key.together.empty()) one["together"] = key.together;
    if (!placed.place.when.empty()) one["when"] = placed.place.when;
    all.push_back(std::move(one));
  }
  return all.dump(2) + "\n";
}

std::string keys_markdown() {
  std::string text =
      "# Keys\n\n"
      "All keys of foretrain's files. `foretrain help KEY` explains one key, with each of its values; `foretrain keys "
      "--json` prints all.\n`make keys` generates this page from the tables in `model/scenario/keys`.\n\n"
      "Editors with JSON Schema complete and check keys. For VS Code with Red Hat's YAML extension:\n\n"
      "```\nforetrain keys --schema scenario > foretrain-scenario.json    # or hardware, model, calibration, "
      "framework\n"
      "```\n\nand in its `settings.json`:\n\n"
      "```\n\"yaml.schemas\": { \"./foretrain-scenario.json\": \"runs/*.yaml\" }\n```\n\n"
      "A single file names its schema in its first line: `# yaml-language-server: $schema=foretrain-scenario.json`.\n\n"
      "`[]` marks lists, `NAME` names that the file chooses. Keys of a mapping that occurs twice are listed once. "
      "Keys below a line such as **kind: matmul** belong to that kind.\n";
  const std::vector<PlacedKey> all = placed_keys(Repeats::left_out);
  for (const keys::FileKind& file : keys::files()) {
    text += fmt::format("\n## Files: {}\n", file.word) + told_before(all, file);
    add_sections(text, all, file.word);
  }
  return text;
}

std::optional<std::string> key_help(std::string_view key) {
  const std::string path = without_numbers(key);
  const auto select = [](std::vector<PlacedKey> all, const auto& matches) {
    std::erase_if(all, [&](const PlacedKey& placed) { return !matches(placed.place); });
    return all;
  };
  const auto whole = select(placed_keys(Repeats::listed), [&](const Place& other) { return other.path == path; });
  if (!whole.empty() && path.find('.') != std::string::npos) return pages_of(whole);
  auto last = select(placed_keys(Repeats::left_out), [&](const Place& other) {
    return other.path == path || last_word(other.path) == path || other.path.ends_with("." + path);
  });
  const auto of_framework = [](const PlacedKey& placed) { return placed.place.path.starts_with("settings."); };
  if (!std::ranges::all_of(last, of_framework)) std::erase_if(last, of_framework);
  if (!last.empty()) return pages_of(last);
  for (const keys::AcceptedName& name : keys::accepted_names()) {
    if (path == join_path(name.mapping, name.theirs)) return key_help(join_path(name.mapping, name.ours));
  }
  for (const keys::AcceptedValue& value : keys::accepted_values()) {
    if (path == value.theirs) return fmt::format("foretrain calls {} {}\n\n{}", key, value.ours, *key_help(value.key));
  }
  const auto ours = keys::our_name(key);
  if (!ours) {
    return pages_of(select(placed_keys(Repeats::left_out), [&](const Place& place) { return has_value(place, path); }));
  }
  const auto page = key_help(key_in(*ours));
  return fmt::format("foretrain calls {} {}\n\n{}", key, *ours, page.value_or(""));
}

std::optional<std::string> nearest_key(std::string_view key) {
  std::vector<std::string> known;
  const bool whole = key.find('.') != std::string_view::npos;
  for (const PlacedKey& placed : placed_keys(Repeats::left_out)) {
    known.emplace_back(whole ? std::string_view(placed.place.path) : last_word(placed.place.path));
  }
  return nearest_word(key, known);
}

}  // namespace foretrain
