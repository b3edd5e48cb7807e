#include "model/scenario/yaml_document.hpp"

#include <fmt/ranges.h>
#include <yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <new>
#include <tuple>
#include <utility>

#include "model/base/files.hpp"
#include "model/base/hash.hpp"
#include "model/base/seen_files.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_values = 200'000;
constexpr std::size_t most_keys = 1000;  // in one mapping

const char* chars(const yaml_char_t* text) { return reinterpret_cast<const char*>(text); }

/// An event of libyaml's parser, freed with it.
struct Event : yaml_event_t {
  Event() : yaml_event_t{} {}
  ~Event() { yaml_event_delete(this); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

/// Builds the tree from libyaml's events, refusing what is not allowed before it can grow.
class TreeBuilder {
 public:
  explicit TreeBuilder(const std::string& file) : file_(file) {}

  YamlNode take() && { return std::move(root_); }
  [[nodiscard]] bool started() const { return started_; }

  void take(const Event& event) {
    const yaml_mark_t& mark = event.start_mark;
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (started_) fail(mark, "a second document begins here", "one document per file");
        started_ = true;
        break;
      case YAML_ALIAS_EVENT:
        fail(mark, "an alias (*name)", "the value itself; anchors and aliases are not supported");
      case YAML_SCALAR_EVENT:
        take_scalar(mark, event.data.scalar);
        break;
      case YAML_SEQUENCE_START_EVENT:
        refuse_anchor_and_tag(mark, event.data.sequence_start);
        open(mark, YamlNode::Kind::sequence);
        break;
      case YAML_MAPPING_START_EVENT:
        refuse_anchor_and_tag(mark, event.data.mapping_start);
        open(mark, YamlNode::Kind::mapping);
        break;
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        stack_.pop_back();
        break;
      default:
        break;
    }
  }

 private:
  /// A collection that is being filled; a mapping first takes a key, then its value.
  struct Level {
    YamlNode* node;
    bool has_key = false;
  };

  [[nodiscard]] SourcePosition position(const yaml_mark_t& mark) const {
    return {file_, static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1};
  }

  [[noreturn]] void fail(const yaml_mark_t& mark, std::string got, std::string expected) const {
    throw ScenarioError(position(mark), "", std::move(got), std::move(expected));
  }

  void refuse_anchor_and_tag(const yaml_mark_t& mark, const auto& node) const {
    if (node.anchor != nullptr) {
      fail(mark, "an anchor (&name)", "the value itself; anchors and aliases are not supported");
    }
    if (node.tag != nullptr) fail(mark, fmt::format("the tag \"{}\"", chars(node.tag)), "a value without tag");
  }

  /// A file holds none, but the escapes of quoted values can write them.
  void refuse_control_characters(const yaml_mark_t& mark, std::string_view value) const {
    for (std::size_t at = 0, length = 0; at < value.size(); at += length) {
      length = character_length(value, at);
      if (length == 0) fail(mark, "a value with a control character", "a value of letters, digits and signs");
    }
  }

  void take_scalar(const yaml_mark_t& mark, const auto& scalar) {
    refuse_anchor_and_tag(mark, scalar);
    const std::string_view value(chars(scalar.value), scalar.length);
    constexpr std::array<std::string_view, 5> nothing{"", "~", "null", "Null", "NULL"};
    if (scalar.style == YAML_PLAIN_SCALAR_STYLE && std::ranges::find(nothing, value) != nothing.end()) {
      add(mark, YamlNode{});
      return;
    }
    if (scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE) refuse_control_characters(mark, value);
    add(mark, yaml_scalar(std::string(value), {}));
  }

  void take_key(const yaml_mark_t& mark, const YamlNode& node) {
    if (!node.is_scalar() || node.scalar.empty()) {
      fail(mark, fmt::format("{} as a key", node.kind_name()),
           "a word as a key, followed by a colon and its value; and every bracket closed");
    }
    YamlNode& mapping = *stack_.back().node;
    if (const YamlEntry* first = mapping.find(node.scalar)) {
      throw ScenarioError(position(mark), node.scalar, "this key is given twice",
                          fmt::format("one value (the first is in line {})", first->where.line));
    }
    if (mapping.entries.size() >= most_keys) {
      fail(mark, fmt::format("more than {} keys in one mapping", most_keys), "a mapping of reasonable size");
    }
    mapping.entries.push_back({node.scalar, position(mark), YamlNode{}});
    stack_.back().has_key = true;
  }

  /// Puts a value where it belongs; nullptr when it was a key.
  YamlNode* add(const yaml_mark_t& mark, YamlNode node) {
    if (++values_ > most_values) {
      fail(mark, fmt::format("more than {} values", most_values), "a scenario of reasonable size");
    }
    node.where = position(mark);
    if (stack_.empty()) {
      root_ = std::move(node);
      return &root_;
    }
    Level& level = stack_.back();
    if (level.node->is_sequence()) return &level.node->items.emplace_back(std::move(node));
    if (!level.has_key) {
      take_key(mark, node);
      return nullptr;
    }
    level.has_key = false;
    return &(level.node->entries.back().value = std::move(node));
  }

  void open(const yaml_mark_t& mark, YamlNode::Kind kind) {
    if (stack_.size() >= deepest_nesting) {
      fail(mark, fmt::format("nested deeper than {} levels", deepest_nesting), "a flatter structure");
    }
    stack_.push_back({add(mark, {kind, {}, {}, {}, {}}), false});
  }

  const std::string& file_;
  bool started_ = false;
  std::size_t values_ = 0;
  YamlNode root_;
  std::vector<Level> stack_;
};

/// The first line up to `last_line` that is indented with a tab, 0 if there is none.
int line_with_tab_indent(std::string_view text, int last_line) {
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    if (++number > last_line) break;
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != std::string::npos && line.substr(0, first).find('\t') != std::string::npos) return number;
  }
  return 0;
}

/// libyaml compares every %TAG with all before it, and ends lines at two characters that nobody sees.
void refuse_surprises(std::string_view text, const std::string& file) {
  const auto refuse = [&](std::size_t at, std::string got, std::string expected) {
    const auto line = std::ranges::count(text.substr(0, at), '\n') + 1;
    throw ScenarioError({file, static_cast<int>(line), 1}, "", std::move(got), std::move(expected));
  };
  for (std::size_t at = text.find("%TAG"); at != std::string_view::npos; at = text.find("%TAG", at + 1)) {
    if (at == 0 || text[at - 1] == '\n') refuse(at, "a directive (%TAG)", "values without tags");
  }
  for (const char* separator : {"\u2028", "\u2029"}) {
    const std::size_t at = text.find(separator);
    if (at != std::string_view::npos) refuse(at, "a separator of lines other than a line end", "plain line ends");
  }
}

/// JSON writes characters beyond 16 bits as two escapes (surrogates), YAML as one.
std::string with_joined_surrogates(std::string text) {
  constexpr std::size_t length = 6;  // of one escape
  const auto unit_at = [&](std::size_t at) -> unsigned {
    unsigned unit = 0;
    if (at + length > text.size() || text.compare(at, 2, "\\u") != 0) return 0;
    std::from_chars(text.data() + at + 2, text.data() + at + length, unit, 16);
    return unit;
  };
  for (std::size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at + 2)) {
    const unsigned high = unit_at(at), low = unit_at(at + length);
    if (high < 0xd800 || high > 0xdbff || low < 0xdc00 || low > 0xdfff) continue;
    text.replace(at, 2 * length, fmt::format("\\U{:08x}", 0x10000 + ((high - 0xd800) << 10U) + (low - 0xdc00)));
  }
  return text;
}

[[noreturn]] void throw_yaml_error(const yaml_parser_t& parser, std::string_view text, const std::string& file) {
  const std::string_view context = parser.context != nullptr ? parser.context : "";
  const yaml_mark_t& mark = context.ends_with("quoted scalar") ? parser.context_mark : parser.problem_mark;
  const SourcePosition where{file, static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1};
  if (const int line = line_with_tab_indent(text, where.line); line > 0) {
    throw ScenarioError({file, line, 1}, "", "this line is indented with a tab", "spaces for indentation");
  }
  const std::string_view problem = parser.problem != nullptr ? parser.problem : "too large";
  if (problem.starts_with("mapping values are not allowed")) {
    throw ScenarioError(where, "", "a second \": \" in one line", "quotes around text that contains \": \"");
  }
  throw ScenarioError(where, "", fmt::format("not valid YAML: {}", problem),
                      "`key: value` lines, indented by spaces; every quote and every bracket closed");
}

/// Parses what holds characters of texts alone.
YamlNode parse_text(std::string text, const std::string& file) {
  refuse_surprises(text, file);
  if (text.starts_with('{') || text.starts_with('[')) text = with_joined_surrogates(std::move(text));
  yaml_parser_t parser;
  if (yaml_parser_initialize(&parser) == 0) throw std::bad_alloc();
  const std::unique_ptr<yaml_parser_t, decltype(&yaml_parser_delete)> freed(&parser, &yaml_parser_delete);
  yaml_parser_set_input_string(&parser, reinterpret_cast<const yaml_char_t*>(text.data()), text.size());
  TreeBuilder builder(file);
  for (bool ended = false; !ended;) {
    Event event;
    if (yaml_parser_parse(&parser, &event) == 0) throw_yaml_error(parser, text, file);
    builder.take(event);
    ended = event.type == YAML_STREAM_END_EVENT;
  }
  if (!builder.started()) {
    throw ScenarioError({file, 0, 0}, "", "the file is empty", "keys and their values, as `key: value`");
  }
  return std::move(builder).take();
}

/// A session's documents. Older versions stay, because callers hold references to them.
struct Documents {
  struct Version {
    FileState file;
    std::unique_ptr<const YamlNode> document;
  };
  std::map<std::string, std::vector<Version>> versions;  ///< by path
};

}  // namespace

const YamlEntry* YamlNode::find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

YamlEntry* YamlNode::find(std::string_view key) { return const_cast<YamlEntry*>(std::as_const(*this).find(key)); }

const YamlNode* YamlNode::at(std::string_view dotted_key) const {
  const std::size_t dot = dotted_key.find('.');
  const YamlEntry* entry = find(dotted_key.substr(0, dot));
  if (entry == nullptr || dot == std::string_view::npos) return entry == nullptr ? nullptr : &entry->value;
  return entry->value.at(dotted_key.substr(dot + 1));
}

void YamlNode::erase(std::string_view dotted_key) {
  const std::size_t dot = dotted_key.find('.');
  if (dot == std::string_view::npos) {
    std::erase_if(entries, [&](const YamlEntry& entry) { return entry.key == dotted_key; });
  } else if (YamlEntry* entry = find(dotted_key.substr(0, dot))) {
    entry->value.erase(dotted_key.substr(dot + 1));
  }
}

std::string_view YamlNode::kind_name() const {
  constexpr std::string_view names[] = {"nothing", "a value", "a list", "a mapping"};
  return names[static_cast<std::size_t>(kind)];
}

std::uint64_t YamlNode::hash() const {
  std::uint64_t hash = hash_of(scalar, where.line, where.column);
  for (const YamlNode& item : items) hash = hash_of(hash, item.hash());
  for (const YamlEntry& entry : entries) hash = hash_of(hash, entry.key, entry.value.hash());
  return hash;
}

bool YamlNode::operator==(const YamlNode& other) const {
  const auto place = [](const YamlNode& node) { return std::tie(node.where.line, node.where.column, node.where.file); };
  return kind == other.kind && scalar == other.scalar && place(*this) == place(other) && items == other.items &&
         entries == other.entries;
}

YamlNode yaml_scalar(std::string text, SourcePosition where) {
  return {YamlNode::Kind::scalar, std::move(text), {}, {}, std::move(where)};
}

YamlNode yaml_mapping(SourcePosition where) { return {YamlNode::Kind::mapping, {}, {}, {}, std::move(where)}; }

std::string in_one_line(const YamlNode& node) {
  std::vector<std::string> parts;
  for (const YamlNode& item : node.items) parts.push_back(in_one_line(item));
  for (const YamlEntry& entry : node.entries) parts.push_back(entry.key + ": " + in_one_line(entry.value));
  if (node.is_sequence()) return fmt::format("[{}]", fmt::join(parts, ", "));
  return node.is_mapping() ? fmt::format("{{ {} }}", fmt::join(parts, ", ")) : node.scalar;
}

void set_position(YamlNode& node, const SourcePosition& where) {
  node.where = where;
  for (YamlNode& item : node.items) set_position(item, where);
  for (YamlEntry& entry : node.entries) {
    entry.where = where;
    set_position(entry.value, where);
  }
}

YamlNode parse_yaml(std::string_view text, const std::string& file) {
  require_text(text, file);
  return parse_text(std::string(text), file);
}

const YamlNode& cached_yaml_file(const std::string& path) {
  const FileState file = look_at(path);
  std::vector<Documents::Version>& versions = session().part<Documents>().versions[path];
  if (!file.is_there() || versions.empty() || versions.back().file != file) {
    std::optional<YamlNode> tree = packed_tree(path);
    if (!tree) tree = parse_text(read_text_file(path), path);
    versions.push_back({file, std::make_unique<const YamlNode>(*std::move(tree))});
  }
  return *versions.back().document;
}

}  // namespace foretrain
