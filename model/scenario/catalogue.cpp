#include "model/scenario/catalogue.hpp"

#include <cstdlib>
#include <iterator>
#include <system_error>

#include "model/base/own_file.hpp"
#include "model/base/seen_files.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"

namespace foretrain {

namespace {

namespace fs = std::filesystem;

std::string scalar_or_empty(const YamlNode& document, std::string_view key) {
  const YamlEntry* entry = document.find(key);
  return entry != nullptr ? entry->value.scalar : std::string();
}

std::string description_of(const YamlNode& document) {
  std::string text = scalar_or_empty(document, "description");
  if (text.empty()) text = scalar_or_empty(document, "name");
  std::ranges::replace(text, '\n', ' ');
  return std::string(trim(text));
}

/// A file of the catalogue's folder; an empty one where there is none.
const YamlNode& own_table(const char* name) {
  static const YamlNode nothing;
  const std::string file = (data_directory() / name).string();
  return look_at(file).is_there() ? cached_yaml_file(file) : nothing;
}

/// "R7" and "loading", as scenarios/topics.yaml has them.
std::vector<std::pair<std::string, std::string>> read_topics() {
  std::vector<std::pair<std::string, std::string>> topics;
  for (const YamlEntry& entry : own_table("topics.yaml").entries) {
    topics.emplace_back(entry.key, scalar_or_empty(entry.value, "topic"));
  }
  return topics;
}

/// "loading-workers" for "r07-workers"; the name as it is where it has no number.
std::string named_by_topic(const std::string& name) {
  for (const auto& [number, topic] : read_topics()) {
    const std::string prefix = fmt::format("r{:0>2}-", number.substr(1));
    if (name.starts_with(prefix)) return topic + name.substr(prefix.size() - 1);
  }
  return name;
}

/// Short names of a section, each with what it stands for (scenarios/aliases.yaml).
const YamlNode& short_names(Catalogue section) {
  static const YamlNode nothing;
  const YamlNode* const names = own_table("aliases.yaml").at(row_of(section).word);
  return names == nullptr ? nothing : *names;
}

/// Full name of a short name; other names unchanged.
std::string named_by_alias(Catalogue section, const std::string& name) {
  const std::string whole = scalar_or_empty(short_names(section), to_lower(name));
  return whole.empty() ? name : whole;
}

/// A name without case, hyphens and blanks: llama370b of Llama-3-70B.
std::string core_of(std::string_view name) {
  std::string core = to_lower(name);
  std::erase_if(core, [](char c) { return c == '-' || c == '_' || c == ' '; });
  return core;
}

/// The one name that is spelt a little otherwise.
std::optional<std::string> only_spelling(std::string_view name, const std::vector<std::string>& known) {
  const auto same = [core = core_of(name)](const std::string& other) { return core_of(other) == core; };
  const auto found = std::ranges::find_if(known, same);
  if (found == known.end() || std::any_of(found + 1, known.end(), same)) return std::nullopt;
  return *found;
}

bool is_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml") || text.ends_with(".yml") ||
         text.ends_with(".json");
}

/// Files that a session may read besides the catalogue.
struct Trust {
  bool catalogue_alone = false;
};

/// Refuses without looking: a stranger does not learn which files there are.
void require_trusted(const Field& path) {
  const Trust* trust = session().part_if_there<Trust>();
  if (trust == nullptr || !trust->catalogue_alone) return;
  if (path.where().file.starts_with((data_directory() / "").string())) return;
  path.fail(fmt::format("a file, \"{}\"", shortened(path.text(), 100)),
            "a catalogue name, or the file's content; the server reads no files");
}

fs::path data_near_program() {
  std::error_code error;
  const fs::path program = own_file();
  for (fs::path directory = program.parent_path(); !directory.empty(); directory = directory.parent_path()) {
    for (const char* place : {"scenarios", "share/foretrain/scenarios"}) {
      // The name alone is common; the hardware below it makes it ours.
      if (fs::is_directory(directory / place / "hardware", error)) return directory / place;
    }
    if (directory == directory.root_path()) break;
  }
  // For programs of others that use the library.
  for (const char* place : {"/usr/local/share/foretrain/scenarios", "/usr/share/foretrain/scenarios"}) {
    if (fs::is_directory(fs::path(place) / "hardware", error)) return place;
  }
  throw UsageError(fmt::format("no folder \"scenarios\" near {}; set FORETRAIN_SCENARIOS to it", program.string()));
}

}  // namespace

fs::path data_directory() {
  if (const char* chosen = std::getenv("FORETRAIN_SCENARIOS")) return chosen;
  static const fs::path found = data_near_program();
  return found;
}

std::vector<CatalogueEntry> list_catalogue(Catalogue section) {
  std::vector<CatalogueEntry> entries;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(data_directory() / row_of(section).folder, missing)) {
    const fs::path& file = entry.path();
    if (file.extension() != ".yaml") continue;
    const YamlNode& document = cached_yaml_file(file.string());
    // links.yaml, cards.yaml, storage.yaml and the like lie beside the nodes.
    const std::string kind = scalar_or_empty(document, section == Catalogue::model ? "family" : "kind");
    if (section == Catalogue::node && kind != "node") continue;
    entries.push_back({file.stem().string(), file, kind, description_of(document)});
  }
  std::ranges::sort(entries, {}, &CatalogueEntry::file);
  return entries;
}

std::vector<CatalogueEntry> list_hardware() {
  std::vector<CatalogueEntry> entries = list_catalogue(Catalogue::node);
  for (const Catalogue section : {Catalogue::gpu, Catalogue::fabric}) {
    for (CatalogueEntry& entry : list_catalogue(section)) entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<std::string> catalogue_names(const std::vector<CatalogueEntry>& entries, std::string_view kind) {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : entries) {
    if (kind.empty() || entry.kind == kind) names.push_back(entry.name);
  }
  return names;
}

std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& known,
                                    const std::vector<std::string>& short_names) {
  const std::string core = core_of(name);
  std::vector<std::string> near;
  std::ranges::copy_if(known, std::back_inserter(near), [&](const std::string& other) {
    return !core.empty() && core_of(other).find(core) != std::string::npos;
  });
  if (near.size() > most_near_names) near.resize(most_near_names);
  if (!near.empty()) return near;
  std::vector<std::string> all = known;
  all.insert(all.end(), short_names.begin(), short_names.end());
  if (const auto nearest = nearest_word(name, all)) return {*nearest};
  constexpr std::ptrdiff_t fewest = 4;  // letters at the beginning that say something
  const auto alike = [&](const std::string& other) { return std::ranges::mismatch(other, name).in1 - other.begin(); };
  for (std::ptrdiff_t most = fewest; const std::string& other : known) {
    if (alike(other) > most) near.clear();
    most = std::max(most, alike(other));
    if (alike(other) == most && near.size() < most_near_names) near.push_back(other);
  }
  return near;
}

fs::path catalogue_file(Catalogue section, const Field& name) {
  if (is_path(name.text())) return referenced_file(name);
  const std::string written =
      fmt::format("{}/{}/{}.yaml", data_directory().native(), row_of(section).folder, name.text());
  if (look_at(written).is_regular()) return written;
  fs::path file = written;
  if (section == Catalogue::run) {
    file.replace_filename(named_by_topic(name.text()) + ".yaml");
    if (look_at(file.string()).is_regular()) return file;
  }
  file.replace_filename(named_by_alias(section, name.text()) + ".yaml");
  if (look_at(file.string()).is_regular()) return file;
  const std::vector<std::string> known = catalogue_names(list_catalogue(section));
  if (const auto same = only_spelling(name.text(), known)) return file.replace_filename(*same + ".yaml");
  std::vector<std::string> shorter;
  for (const YamlEntry& entry : short_names(section).entries) shorter.push_back(entry.key);
  const std::vector<std::string> near = near_names(name.text(), known, shorter);
  const auto& [noun, word, place, listing] = row_of(section);
  std::string remedy = fmt::format("did you mean {}?", or_list(near));
  if (near.empty()) remedy = "a path to a file, or " + (listing.empty() ? "one of " + or_list(known) : "a known name");
  if (near.empty() || near.size() == most_near_names) {
    if (!listing.empty()) remedy += fmt::format("; `{}` shows all", listing);
  }
  name.fail(fmt::format("unknown {} \"{}\"", word, name.text()), std::move(remedy));
}

void refuse_paths() { session().part<Trust>().catalogue_alone = true; }

fs::path referenced_file(const Field& path) {
  require_trusted(path);
  const fs::path written = path.text();
  for (const fs::path& file : {fs::path(path.where().file).parent_path() / written, written}) {
    if (look_at(file.string()).is_there()) return file;
  }
  path.fail(fmt::format("no file \"{}\"", path.text()), "the path of a file, relative to this one");
}

}  // namespace foretrain
