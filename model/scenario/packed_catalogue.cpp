#include "model/scenario/packed_catalogue.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/own_file.hpp"
#include "model/base/session.hpp"
#include "model/scenario/catalogue.hpp"

namespace foretrain {

namespace {

namespace fs = std::filesystem;

/// Takes values, or fills them in the same order.
struct Archive {
  std::string bytes = {};
  std::optional<std::size_t> at = std::nullopt;  ///< where values are read; nothing: they are written

  template <typename T>
  void number(T& value) {
    if (at) {
      if (bytes.size() - *at < sizeof value) throw UsageError("catalogue.packed is damaged; build the program again");
      std::memcpy(&value, bytes.data() + *at, sizeof value);
      *at += sizeof value;
    } else {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  void text(std::string& value) {
    auto size = static_cast<std::uint32_t>(value.size());
    number(size);
    if (at) {
      value = bytes.substr(*at, size);
      *at += value.size();
    } else {
      bytes += value;
    }
  }
};

/// `file`: where the tree stands.
void pass(Archive& archive, YamlNode& node, const std::string& file) {
  const auto place = [&](SourcePosition& where) {
    archive.number(where.line);
    archive.number(where.column);
    where.file = file;
  };
  auto items = static_cast<std::uint32_t>(node.items.size()), entries = static_cast<std::uint32_t>(node.entries.size());
  archive.number(node.kind);
  archive.number(items);
  archive.number(entries);
  archive.text(node.scalar);
  place(node.where);
  node.items.resize(items);
  node.entries.resize(entries);
  for (YamlNode& item : node.items) pass(archive, item, file);
  for (YamlEntry& entry : node.entries) {
    archive.text(entry.key);
    place(entry.where);
    pass(archive, entry.value, file);
  }
}

struct PackedFile {
  std::string name;                   ///< in its folder
  std::int64_t size = 0, second = 0;  ///< of its text, and in which it was written
  std::string tree;
};

void pass(Archive& archive, PackedFile& file) {
  archive.text(file.name);
  archive.number(file.size);
  archive.number(file.second);
  archive.text(file.tree);
}

std::int64_t second_of(const FileState& file) { return file.modified / 1'000'000'000; }

struct PackedCatalogue {
  std::string folder = (data_directory() / "").string();
  std::vector<PackedFile> files = {};  ///< by name

  PackedCatalogue() {
    const fs::path program = own_file().parent_path();
    std::error_code unknown;
    for (const fs::path& place : {program, program / "..", data_directory() / ".."}) {
      if (!fs::exists(place / "catalogue.packed", unknown)) continue;
      Archive archive{read_file(place / "catalogue.packed", {}), 0};
      while (*archive.at < archive.bytes.size()) pass(archive, files.emplace_back());
      return;
    }
  }
};

}  // namespace

std::string pack_catalogue(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path name = fs::relative(entry.path(), folder);
    if (name.extension() == ".yaml" && *name.begin() != "runs") names.push_back(name.string());
  }
  std::ranges::sort(names);
  Archive all;
  for (const std::string& name : names) {
    const std::string path = (folder / name).string();
    const FileState state = look_at(path);
    YamlNode document = parse_yaml(read_text_file(path), path);
    Archive tree;
    pass(tree, document, path);
    PackedFile file{name, state.size, second_of(state), std::move(tree.bytes)};
    pass(all, file);
  }
  return std::move(all.bytes);
}

std::optional<YamlNode> packed_tree(const std::string& path, const FileState& file) {
  const auto& [folder, files] = session().part<PackedCatalogue>();
  if (!path.starts_with(folder)) return std::nullopt;
  const std::string name = path.substr(folder.size());
  const auto known = std::ranges::lower_bound(files, name, {}, &PackedFile::name);
  const bool same =
      known != files.end() && known->name == name && known->size == file.size && known->second == second_of(file);
  if (!same) return std::nullopt;
  YamlNode tree;
  Archive archive{known->tree, 0};
  pass(archive, tree, path);
  return tree;
}

}  // namespace foretrain
