#include "reports/import/node_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/text.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "reports/import/draft.hpp"
#include "reports/print/table.hpp"
#include "reports/print/wiring_text.hpp"

namespace foretrain {

namespace {

constexpr int comment_column = 42, page = 118;

class NodeWriter {
 public:
  NodeWriter(const std::map<std::string, std::string>& remarks, std::string tree)
      : remarks_(remarks), tree_(std::move(tree)) {}

  void write(const YamlNode& mapping, const keys::Mapping* known, const std::string& path, std::size_t indent) {
    for (const YamlEntry& entry : mapping.entries) {
      const keys::Key* key = find(known, mapping, entry.key);
      write_entry(entry, key, path.empty() ? entry.key : path + "." + entry.key, indent);
    }
  }
  void comment(const std::string& text, std::size_t indent) {
    for (const std::string& line : split(wrap(text, page - static_cast<int>(indent), 0), '\n')) {
      text_ += std::string(indent, ' ') + "# " + line + "\n";
    }
  }
  std::string take() && { return std::move(text_); }

 private:
  /// Among the mapping's keys and those of the variant that it chooses.
  static const keys::Key* find(const keys::Mapping* known, const YamlNode& mapping, const std::string& name) {
    if (known == nullptr) return nullptr;
    const YamlEntry* decides = known->decides.empty() ? nullptr : mapping.find(known->decides);
    const keys::Form form{.kind = keys::Form::Kind::mapping, .mapping = known};
    for (const keys::Key* key : keys::keys_of(form, decides != nullptr ? decides->value.scalar : "")) {
      if (key->name == name) return key;
    }
    return nullptr;
  }

  void write_entry(const YamlEntry& entry, const keys::Key* key, const std::string& path, std::size_t indent) {
    const std::string head = std::string(indent, ' ') + entry.key + ":";
    if (path == "wiring") return write_wiring(entry.value, *key);
    if (!entry.value.is_mapping() || path.starts_with("sources.")) {
      return write_line(head + " " + flow_text(entry.value), key, path);
    }
    if (indent == 0) text_ += "\n";
    write_line(head, key, path);
    if (key == nullptr) return write(entry.value, nullptr, path, indent + 2);
    for (const keys::Form& form : key->value.forms()) {
      if (form.mapping == nullptr) continue;
      if (form.shape != keys::Form::Shape::by_name) return write(entry.value, form.mapping, path, indent + 2);
      return write_named(entry.value, form.mapping, path, indent + 2);
    }
    write(entry.value, nullptr, path, indent + 2);
  }

  /// A mapping whose keys are names that the file chooses.
  void write_named(const YamlNode& named, const keys::Mapping* known, const std::string& path, std::size_t indent) {
    for (const YamlEntry& entry : named.entries) {
      const std::string below = path + "." + entry.key;
      if (path == "sources" || !entry.value.is_mapping()) {
        text_ += fmt::format("{:{}}{}: {}\n", "", indent, entry.key, flow_text(entry.value));
        continue;
      }
      text_ += fmt::format("{:{}}{}:\n", "", indent, entry.key);
      write(entry.value, known, below, indent + 2);
    }
  }

  void write_wiring(const YamlNode& wiring, const keys::Key& key) {
    text_ += "\n";
    comment(fmt::format("{} Ends: {}", key.meaning, keys::key_of(keys::link, "between").meaning), 0);
    comment(fmt::format("link: {} count: {}", keys::key_of(keys::link, "link").meaning,
                        keys::key_of(keys::link, "count").meaning),
            0);
    comment("The tree that they make, bandwidths as large copies reach them in one direction:", 0);
    for (const std::string& line : split(tree_, '\n')) {
      if (!line.empty()) text_ += "#   " + line + "\n";
    }
    text_ += "wiring:\n";
    for (std::size_t i = 0; i < wiring.items.size(); ++i) {
      write_line("  - " + flow_text(wiring.items[i]), nullptr, fmt::format("wiring[{}]", i));
    }
  }

  void write_line(const std::string& line, const keys::Key* key, const std::string& path) {
    std::string told = key != nullptr ? std::string(key->meaning) : "";
    const auto remark = remarks_.find(path);
    if (remark != remarks_.end()) told += (told.empty() ? "" : " ") + remark->second;
    text_ += told.empty() ? line + "\n" : fmt::format("{:<{}}  # {}\n", line, comment_column, told);
  }

  const std::map<std::string, std::string>& remarks_;
  std::string tree_, text_;
};

}  // namespace

std::string commented_node(const YamlNode& document, const std::map<std::string, std::string>& remarks,
                           const std::string& title) {
  const Node node = read_node(Field(document, ""));
  NodeWriter writer(remarks, wiring_text(node, node.network, 0));
  writer.comment(title, 0);
  writer.write(document, &keys::node, "", 0);
  return std::move(writer).take();
}

}  // namespace foretrain
