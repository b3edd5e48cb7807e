#include "reports/export/shared_rows.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/scenario/document_walk.hpp"
#include "model/scenario/load/cases.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/import/draft.hpp"

namespace foretrain {

namespace {

/// A path, or the name of a file.
bool names_file(const std::string& text) {
  constexpr std::string_view endings[] = {".yaml", ".yml", ".json", ".csv"};
  const auto ends = [&](std::string_view ending) { return text.ends_with(ending); };
  return text.find_first_of("/\\~") != std::string::npos || std::ranges::any_of(endings, ends);
}

/// Whether people write what they like as the key's value.
bool is_free_text(const keys::Key& key) {
  return std::ranges::all_of(key.value.forms(),
                             [](const keys::Form& form) { return form.kind == keys::Form::Kind::text; });
}

const keys::Form* named_form(const keys::Key& key) {
  const auto forms = key.value.forms();
  const auto named = [](const keys::Form& form) { return form.kind == keys::Form::Kind::name; };
  const auto found = std::ranges::find_if(forms, named);
  return found == forms.end() ? nullptr : &*found;
}

/// Removes names and paths from values of keys.
class Cleaner {
 public:
  explicit Cleaner(std::map<std::string, int>& removed) : removed_(removed) {}

  /// Files become their values until no key names one, then the rest goes.
  YamlNode cleaned(YamlNode document) {
    constexpr int deepest = 4;  // a node's file that names a GPU's
    for (int depth = 0; depth < deepest; ++depth) {
      Found found = look_at(document);
      if (found.files.empty()) break;
      document = replaced(document, found);
    }
    Found found = look_at(document);
    found.files.clear();
    return replaced(document, found);
  }

 private:
  struct Found {
    std::set<const YamlNode*> personal;
    std::map<const YamlNode*, YamlNode> files;
  };

  Found look_at(const YamlNode& document) {
    Found found;
    visit_mappings(document, keys::scenario, [&](const DocumentMapping& mapping) {
      for (const YamlEntry& entry : mapping.node.entries) {
        const keys::Key* key = mapping.key_of(entry);
        if (key != nullptr) look_at(*key, entry.value, found);
      }
    });
    return found;
  }

  static void look_at(const keys::Key& key, const YamlNode& value, Found& found) {
    constexpr std::string_view remarks[] = {"name", "description", "source", "sources"};
    const bool is_remark = std::ranges::find(remarks, key.name) != std::end(remarks);
    const auto is_file = [](const YamlNode& item) { return item.is_scalar() && names_file(item.scalar); };
    if (is_remark || (is_free_text(key) && std::ranges::any_of(value.items, is_file))) found.personal.insert(&value);
    if (!value.is_scalar() || is_remark) return;
    const keys::Form* form = named_form(key);
    if (form != nullptr && names_file(value.scalar)) {
      const std::filesystem::path path = std::filesystem::path(value.where.file).parent_path() / value.scalar;
      const bool has_keys = form->mapping != nullptr && std::filesystem::exists(path);
      if (!has_keys) {
        found.personal.insert(&value);
        return;
      }
      YamlNode& content = found.files[&value] = parse_yaml(read_text_file(path.string(), 4'000'000), path.string());
      std::erase_if(content.entries, [](const YamlEntry& entry) { return entry.key == "kind"; });  // of files alone
    } else if (is_free_text(key) && names_file(value.scalar)) {
      found.personal.insert(&value);
    }
  }

  YamlNode replaced(const YamlNode& node, const Found& found) {
    YamlNode copy = node;
    copy.entries.clear();
    for (const YamlEntry& entry : node.entries) {
      if (found.personal.contains(&entry.value)) {
        ++removed_[entry.key];
        continue;
      }
      const auto file = found.files.find(&entry.value);
      copy.entries.push_back(entry);
      copy.entries.back().value = file != found.files.end() ? file->second : replaced(entry.value, found);
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) copy.items[i] = replaced(node.items[i], found);
    return copy;
  }

  std::map<std::string, int>& removed_;
};

std::string measured_text(const Measurement& measurement) {
  using enum MeasuredQuantity;
  const MeasuredQuantity quantity = measurement.quantity;
  const bool is_time = quantity == step_time || quantity == time || quantity == time_to_train;
  const char* unit = is_time ? " s" : quantity == bus_bandwidth ? " B/s" : quantity == memory_per_gpu ? " B" : "";
  return fmt::format("{:.9g}{}", measurement.value, unit);
}

/// Number of steps behind a row of `import log`.
std::string source_text(const std::string& source) {
  constexpr std::string_view begins = "median of ";
  const std::size_t begin = source.find(begins);
  const std::size_t end = source.find_first_not_of("0123456789", begin + begins.size());
  const bool is_of_log = begin != std::string::npos && source.find(" steps", begin) == end;
  return is_of_log ? fmt::format("shared run, {} steps", source.substr(begin, end - begin)) : "shared run";
}

Cells cells_of(const Case& row, std::size_t number, std::map<std::string, int>& removed) {
  Cells cells = {{"case", fmt::format("shared-{}", number)}, {"group", "shared"}};
  if (row.unreadable) throw *row.unreadable;
  add_cells(Cleaner(removed).cleaned(document_of(row)), "", cells);
  for (const Measurement& one : row.measured) {
    cells.emplace_back(fmt::format("measured.{}", name(one.quantity)), measured_text(one));
  }
  cells.emplace_back("source", source_text(row.source));
  ++removed["case names"];
  if (!row.group.empty()) ++removed["groups"];
  if (!row.source.empty()) ++removed["sources"];
  if (!row.replay.empty()) ++removed["replay.* columns"];
  return cells;
}

/// Whether the row says that the run was out of memory, in place of a time.
bool is_out_of_memory(const Case& row) {
  return row.unreadable && row.unreadable->key().starts_with("measured.") &&
         to_lower(row.unreadable->got()).starts_with("\"oom\"");
}

}  // namespace

SharedRows shared_rows(std::string_view text, const std::string& file) {
  SharedRows shared;
  std::vector<Case> cases = read_cases_text(text, file);
  if (!cases.empty() && std::ranges::all_of(cases, is_out_of_memory)) throw ScenarioError(*cases.front().unreadable);
  if (const auto failed = std::erase_if(cases, is_out_of_memory); failed > 0) {
    shared.removed["rows out of memory (OOM)"] = static_cast<int>(failed);
  }
  std::vector<Cells> rows;
  for (const Case& row : cases) rows.push_back(cells_of(row, rows.size() + 1, shared.removed));
  shared.table = table_of(rows);
  shared.rows = rows.size();
  const std::vector<Case> again = read_cases_text(shared.table, "the shared table");
  for (std::size_t i = 0; i < again.size(); ++i) {
    try {
      scenario_of(again[i]);
    } catch (const ScenarioError& error) {
      throw ScenarioError(cases[i].where, error.key(), error.got(), error.expected());
    }
  }
  return shared;
}

std::string to_text(const SharedRows& shared) {
  const std::string header = shared.table.substr(0, shared.table.find('\n'));
  std::vector<std::string> removed;
  for (const auto& [what, times] : shared.removed) removed.push_back(fmt::format("{} {}", times, what));
  return fmt::format("Rows: {}\nColumns: {}\nRemoved: {}\n", shared.rows, header, fmt::join(removed, ", "));
}

}  // namespace foretrain
