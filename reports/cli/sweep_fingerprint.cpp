#include "reports/cli/sweep_fingerprint.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/scenario/yaml_document.hpp"

namespace foretrain {

namespace {

namespace fs = std::filesystem;

/// Calls `add` with every text in a document.
template <typename Add>
void for_each_scalar(const YamlNode& node, const Add& add) {
  if (node.is_scalar()) add(node.scalar);
  for (const YamlNode& item : node.items) for_each_scalar(item, add);
  for (const YamlEntry& entry : node.entries) for_each_scalar(entry.value, add);
}

/// As paths are told from names: a slash, or the extension.
bool may_name_files(std::string_view value) {
  const auto has = [value](const char* piece) { return value.find(piece) != std::string_view::npos; };
  return has("/") || has(".yaml") || has(".yml") || has(".json");
}

}  // namespace

void Fingerprint::add(std::string_view piece) {
  hash_ = (fnv_1a(piece, hash_) ^ piece.size()) * fnv_1a_prime;  // so that "ab", "c" differs from "a", "bc"
}

void Fingerprint::add_folder(const std::string& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) add(read_text_file(file));
}

void Fingerprint::add_identity(const std::string& file) {
  std::error_code unseen;
  add(std::to_string(fs::file_size(file, unseen)));
  const auto written = fs::last_write_time(file, unseen);
  if (!unseen) add(std::to_string(written.time_since_epoch().count()));
}

void Fingerprint::add_value(const std::string& value, const std::string& folder) {
  add(value);
  if (!may_name_files(value) || !values_.insert(folder + '\n' + value).second) return;
  const auto add_named = [&](const std::string& text) {
    std::error_code unseen;
    for (const fs::path& path : {fs::path(folder) / text, fs::path(text)}) {
      if (!fs::is_regular_file(path, unseen)) continue;
      add_file(path.string());
      return;
    }
  };
  if (value.find_first_of("{[") == std::string::npos) return add_named(value);
  try {
    for_each_scalar(parse_yaml(value, "value"), add_named);
  } catch (const ScenarioError&) {
    // Whoever predicts says what is wrong with it.
  }
}

void Fingerprint::add_file(const std::string& file) {
  if (!files_.insert(file).second) return;
  const std::string folder = fs::path(file).parent_path().string();
  try {
    add(read_text_file(file));
    for_each_scalar(cached_yaml_file(file), [&](const std::string& value) { add_value(value, folder); });
  } catch (const ScenarioError&) {
    // As above: what was read of it is in the fingerprint.
  }
}

}  // namespace foretrain
