#include "model/scenario/yaml_document.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/hash.hpp"
#include "model/base/own_file.hpp"
#include "model/base/session.hpp"
#include "model/scenario/catalogue.hpp"

namespace foretrain {

namespace {

namespace fs = std::filesystem;

/// First line of packed catalogues; the number changes with the order of values.
constexpr std::string_view packed_format = "foretrain catalogue 2\n";

/// Takes values, or fills them in the same order.
struct Archive {
  std::string bytes = {};
  std::optional<std::size_t> at = std::nullopt;  ///< where values are read; nothing: they are written

  /// The next bytes of what is read. Throws UsageError where fewer are left.
  std::string_view next(std::size_t size) {
    if (bytes.size() - *at < size) throw UsageError("catalogue.packed is damaged");
    return std::string_view(bytes).substr(std::exchange(*at, *at + size), size);
  }
  template <typename T>
  void number(T& value) {
    if (at) {
      std::memcpy(&value, next(sizeof value).data(), sizeof value);
    } else {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  void text(std::string& value) {
    auto size = static_cast<std::uint32_t>(value.size());
    number(size);
    at ? value = next(size) : bytes += value;
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

/// The same for equal texts where the library is that of the program that packed.
std::uint64_t hash_of_both(std::string_view text, std::string_view tree) {
  const std::hash<std::string_view> hash;
  return hash_of(hash(text), hash(tree));
}

struct PackedFile {
  std::string name;  ///< in its folder
  std::string tree;
  std::uint64_t hash = 0;  ///< of its text and its tree
};

void pass(Archive& archive, PackedFile& file) {
  archive.text(file.name);
  archive.text(file.tree);
  archive.number(file.hash);
}

struct PackedCatalogue {
  std::string folder = (data_directory() / "").string();
  std::vector<PackedFile> files = {};  ///< by name

  PackedCatalogue() {
    const fs::path program = own_file().parent_path();
    std::error_code unknown;
    for (const fs::path& place : {program, program / "..", data_directory() / ".."}) {
      if (!fs::exists(place / "catalogue.packed", unknown)) continue;
      read(place / "catalogue.packed");
      return;
    }
  }

 private:
  /// Nothing of a file that is unreadable, damaged or of another version.
  void read(const fs::path& packed) {
    try {
      Archive archive{read_file(packed, {}), packed_format.size()};
      if (!archive.bytes.starts_with(packed_format)) return;
      while (*archive.at < archive.bytes.size()) pass(archive, files.emplace_back());
    } catch (const UsageError&) {
      files.clear();
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
  Archive all{std::string(packed_format)};
  for (const std::string& name : names) {
    const std::string path = (folder / name).string();
    const std::string text = read_file(path, {});
    YamlNode document = parse_yaml(text, path);
    Archive tree;
    pass(tree, document, path);
    PackedFile file{name, tree.bytes, hash_of_both(text, tree.bytes)};
    pass(all, file);
  }
  return std::move(all.bytes);
}

std::optional<YamlNode> packed_tree(const std::string& path) {
  const auto& [folder, files] = session().part<PackedCatalogue>();
  if (!path.starts_with(folder)) return std::nullopt;
  const std::string name = path.substr(folder.size());
  const auto known = std::ranges::lower_bound(files, name, {}, &PackedFile::name);
  if (known == files.end() || known->name != name) return std::nullopt;
  if (known->hash != hash_of_both(read_file(path, {}), known->tree)) return std::nullopt;
  YamlNode tree;
  Archive archive{known->tree, 0};
  pass(archive, tree, path);
  return tree;
}

}  // namespace foretrain
