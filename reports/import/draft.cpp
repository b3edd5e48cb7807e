#include "reports/import/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "model/base/text.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

constexpr std::size_t longest_flow = 100;  ///< characters of a list or mapping that stands on one line
constexpr int comment_width = 118;

/// Text that YAML would read as another type is quoted; JSON's quotes are YAML's.
std::string scalar_text(const YamlNode& node) {
  if (node.is_null()) return "null";
  const std::string& text = node.scalar;
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_./+-% ()").find(c) != std::string_view::npos;
  };
  const bool edges = !text.empty() && text.back() != ' ' && std::isalnum(static_cast<unsigned char>(text[0])) != 0;
  if (edges && text != "null" && std::ranges::all_of(text, plain)) return text;
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Comments stay on their line, and are text whatever a binary file calls things.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return printable(text);
}

class Writer {
 public:
  Writer(const std::map<std::string, std::string>& comments, int column) : comments_(comments), column_(column) {}

  void write_entries(const YamlNode& mapping, const std::string& path, std::size_t indent) {
    for (const YamlEntry& entry : mapping.entries) {
      const std::string key = path.empty() ? entry.key : path + "." + entry.key;
      write_value(std::string(indent, ' ') + entry.key + ":", entry.value, key, indent);
    }
  }
  std::string take() && { return std::move(text_); }

 private:
  [[nodiscard]] bool is_one_line(const YamlNode& value, const std::string& key, std::size_t indent) const {
    const bool stands_alone = !value.is_mapping() && !(value.is_sequence() && !value.items.empty());
    const bool nested = std::ranges::any_of(value.entries, [](const YamlEntry& e) { return e.value.is_mapping(); }) ||
                        std::ranges::any_of(value.items, [](const YamlNode& item) { return !item.is_scalar(); });
    return stands_alone ||
           (!nested && indent > 0 && !has_comments_below(key) && flow_text(value).size() <= longest_flow);
  }

  void write_value(const std::string& head, const YamlNode& value, const std::string& key, std::size_t indent) {
    if (is_one_line(value, key, indent)) return write_line(head + " " + flow_text(value), key);
    write_line(head, key);
    if (value.is_mapping()) return write_entries(value, key, indent + 2);
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      write_line(std::string(indent + 2, ' ') + "- " + flow_text(value.items[i]), fmt::format("{}[{}]", key, i));
    }
  }

  void write_line(const std::string& line, const std::string& key) {
    const auto comment = comments_.find(key);
    text_ += comment == comments_.end() ? line : fmt::format("{:<{}}  # {}", line, column_, one_line(comment->second));
    text_ += "\n";
  }

  [[nodiscard]] bool has_comments_below(const std::string& key) const {
    const auto next = comments_.upper_bound(key);
    if (next == comments_.end() || !next->first.starts_with(key)) return false;
    return next->first[key.size()] == '.' || next->first[key.size()] == '[';
  }

  const std::map<std::string, std::string>& comments_;
  int column_;
  std::string text_;
};

std::string at_line(const SourcePosition& where, const std::string& what) {
  return where.line > 0 ? fmt::format("line {}: {}", where.line, what) : what;
}

}  // namespace

std::string flow_text(const YamlNode& node) {
  std::vector<std::string> parts;
  for (const YamlNode& item : node.items) parts.push_back(flow_text(item));
  for (const YamlEntry& entry : node.entries) parts.push_back(entry.key + ": " + flow_text(entry.value));
  switch (node.kind) {
    case YamlNode::Kind::sequence:
      return fmt::format("[{}]", fmt::join(parts, ", "));
    case YamlNode::Kind::mapping:
      return fmt::format("{{ {} }}", fmt::join(parts, ", "));
    default:
      return scalar_text(node);
  }
}

std::string yaml_text(const YamlNode& document, const std::map<std::string, std::string>& comments, int column) {
  Writer writer(comments, column);
  writer.write_entries(document, "", 0);
  return std::move(writer).take();
}

std::string as_comments(const std::vector<std::string>& remarks) {
  std::string text;
  for (const std::string& remark : remarks) {
    std::string wrapped = wrap(one_line(remark), comment_width, 0);
    for (const std::string& line : split(wrapped, '\n')) text += "# " + line + "\n";
  }
  return text;
}

Draft::Draft(const ImportInput& input) : file_(input.file), document_(yaml_mapping({input.file, 0, 0})) {
  for (const std::string& text : input.overrides) overrides_.push_back(parse_override(text));
}

std::string named(const ForeignSetting& setting) {
  if (setting.key.starts_with("--")) return setting.value.empty() ? setting.key : setting.key + " " + setting.value;
  return (setting.written.empty() ? setting.key : setting.written) + ": " + setting.value;
}

YamlNode& place_of(YamlNode& document, std::string_view dotted_key, const SourcePosition& where) {
  YamlNode* node = &document;
  for (const std::string& part : split(dotted_key, '.')) {
    if (node->is_null()) *node = yaml_mapping(where);
    YamlEntry* entry = node->find(part);
    if (entry == nullptr) entry = &node->entries.emplace_back(YamlEntry{part, where, YamlNode{}});
    node = &entry->value;
  }
  return *node;
}

void Draft::set(const std::string& key, DraftValue value, const SourcePosition& where, const std::string& comment) {
  if (const auto said = std::ranges::find(overrides_, key, &Override::key); said != overrides_.end()) {
    return apply(*said);  // here already, so that it stands among its neighbours
  }
  if (has(key)) return;
  YamlNode& node = place_of(document_, key, where);
  node = std::move(value.node);
  if (node.where.file.empty()) node.where = where;
  if (!comment.empty()) comments_[key] = at_line(where, comment);
}

void Draft::set(const std::string& key, DraftValue value, const ForeignSetting& says, const std::string& more) {
  set(key, std::move(value), says.where, named(says) + more);
}

void Draft::assume(const std::string& key, DraftValue value, const std::string& why) {
  if (!has(key)) note_assumed(key, flow_text(value.node) + ": " + why);
  set(key, std::move(value), nowhere(), "assumed: " + why);
}

void Draft::note_assumed(const std::string& key, const std::string& why) {
  if (!is_said_by_user(key)) assumed_.emplace_back(key, one_line(why));
}

void Draft::append(const std::string& key, YamlNode item, const SourcePosition& where, const std::string& comment) {
  if (is_said_by_user(key)) return;
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  if (document_.at(key) == nullptr) set(key, std::move(list), where, "");
  YamlNode* node = &document_;
  for (const std::string& part : split(key, '.')) node = &node->find(part)->value;
  if (!comment.empty()) comments_[fmt::format("{}[{}]", key, node->items.size())] = comment;
  node->items.push_back(std::move(item));
}

bool Draft::is_said_by_user(std::string_view key) const {
  return std::ranges::any_of(overrides_, [key](const Override& override) {
    return key == override.key || (key.starts_with(override.key) && key[override.key.size()] == '.');
  });
}

bool Draft::has(std::string_view key) const {
  if (is_said_by_user(key)) return true;
  const YamlNode* node = &document_;
  for (const std::string& part : split(key, '.')) {
    if (!node->is_mapping()) return !node->is_null();
    const YamlEntry* entry = node->find(part);
    if (entry == nullptr) return false;
    node = &entry->value;
  }
  return true;
}

std::string Draft::scalar(std::string_view key, const std::string& fallback) const {
  for (const Override& override : overrides_) {
    if (override.key == key) return std::string(trim(override.value));
  }
  const YamlNode* node = document_.at(key);
  return node != nullptr && node->is_scalar() ? node->scalar : fallback;
}

void Draft::leave_out(const SourcePosition& where, const std::string& what) {
  left_out_.push_back(at_line(where, what));
}

void Draft::not_understood(const SourcePosition& where, const std::string& what) {
  not_understood_.push_back(at_line(where, what));
}

void Draft::apply(const Override& override) {
  apply_override(document_, override);
  comments_[override.key] = "--set";
}

void Draft::apply_overrides() {
  for (const Override& override : overrides_) apply(override);
}

std::string Draft::text(std::string_view importer) const {
  YamlNode document = document_;
  std::vector<std::pair<std::string, std::string>> assumed = assumed_;
  if (!left_out_.empty()) assumed.emplace_back("no_effect", fmt::format("{}", fmt::join(left_out_, "; ")));
  if (!not_understood_.empty()) {
    assumed.emplace_back("not_understood", fmt::format("{}", fmt::join(not_understood_, "; ")));
  }
  const bool repeated = document.find("gpu") != nullptr || document.find("workload") != nullptr;  // not of fabrics
  if (!assumed.empty() && repeated)
    document.entries.push_back({"assumed", nowhere(), yaml_entries(assumed, nowhere())});
  std::map<std::string, std::string> comments = comments_;
  comments["assumed"] = "predictions repeat this; take out what you have stated";
  comments["assumed.no_effect"] = "settings without a meaning here for time or memory";
  comments["assumed.not_understood"] = "settings that are not understood: predictions leave them out";
  return as_comments({fmt::format("Written by `foretrain import {} {}`.", importer, file_)}) + as_comments(notes_) +
         yaml_text(document, comments);
}

YamlNode yaml_list(const std::vector<std::string>& items, const SourcePosition& where) {
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  list.where = where;
  for (const std::string& item : items) list.items.push_back(yaml_scalar(item, where));
  return list;
}

YamlNode yaml_nodes(const std::vector<std::pair<std::string, YamlNode>>& entries, const SourcePosition& where) {
  YamlNode mapping = yaml_mapping(where);
  for (const auto& [key, value] : entries) {
    mapping.entries.push_back({key, where, value});
    if (value.where.file.empty()) mapping.entries.back().value.where = where;
  }
  return mapping;
}

YamlNode yaml_entries(const std::vector<std::pair<std::string, std::string>>& entries, const SourcePosition& where) {
  YamlNode mapping = yaml_mapping(where);
  for (const auto& [key, value] : entries) mapping.entries.push_back({key, where, yaml_scalar(value, where)});
  return mapping;
}

void add_cells(const YamlNode& node, const std::string& path, Cells& cells) {
  for (const YamlEntry& entry : node.entries) {
    const std::string key = path.empty() ? entry.key : path + "." + entry.key;
    if (key == "name" || key == "assumed") continue;
    if (entry.value.is_mapping()) {
      add_cells(entry.value, key, cells);
    } else {
      cells.emplace_back(key, flow_text(entry.value));
    }
  }
}

std::string table_of(const std::vector<Cells>& rows) {
  std::vector<std::string> header;
  for (const Cells& cells : rows) {
    for (const auto& [key, value] : cells) {
      if (std::ranges::find(header, key) == header.end()) header.push_back(key);
    }
  }
  std::ranges::stable_sort(header, {}, [](const std::string& key) {
    return key == "source" ? 2 : key.starts_with("measured.") ? 1 : 0;
  });
  return csv_text(header, rows);
}

std::string without_colours(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escapes = text[i] == '\x1b';
    if (escapes) i = std::min(text.find_first_of("m\n", i), text.size() - 1);
    if (!escapes || text[i] == '\n') plain += text[i];
  }
  return plain;
}

SourcePosition position_in(std::string_view text, std::size_t offset, const std::string& file) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // 0 where there is none
  return {file, static_cast<int>(std::ranges::count(before, '\n')) + 1,
          static_cast<int>(before.size() - line_start) + 1};
}

std::string finished_scenario(Draft& draft, std::string_view importer) {
  draft.apply_overrides();
  read_scenario(draft.document(), draft.scalar("name", "imported"));
  return draft.text(importer);
}

}  // namespace foretrain
