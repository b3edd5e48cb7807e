#include "model/scenario/yaml_document.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "model/base/files.hpp"
#include "model/base/seen_files.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"
#include "model/base/utf8.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_values = 200'000;
constexpr std::size_t most_keys = 1000;  // in one mapping
constexpr std::ptrdiff_t most_open_brackets = 1000;
constexpr std::size_t longest_line = 1'000'000;  // yaml-cpp takes half a microsecond a byte of a value

/// Builds the tree from yaml-cpp's events, refusing what is not allowed before it can grow.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string file) : file_(std::move(file)) {}

  YamlNode take() && { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) fail(mark, "a second document begins here", "one document per file");
    started_ = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(mark, YamlNode{});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "an alias (*name)", "the value itself; anchors and aliases are not supported");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    refuse_control_characters(mark, value);
    add(mark, yaml_scalar(value, {}));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    YamlNode node;
    node.kind = YamlNode::Kind::sequence;
    open(mark, std::move(node));
  }
  void OnSequenceEnd() override { stack_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    open(mark, yaml_mapping({}));
  }
  void OnMapEnd() override { stack_.pop_back(); }

 private:
  /// A collection that is being filled; a mapping first takes a key, then its value.
  struct Level {
    YamlNode* node;
    bool has_key = false;
  };

  [[nodiscard]] SourcePosition position(const YAML::Mark& mark) const {
    return {file_, mark.line + 1, mark.column + 1};
  }

  [[noreturn]] void fail(const YAML::Mark& mark, std::string got, std::string expected) const {
    throw ScenarioError(position(mark), "", std::move(got), std::move(expected));
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) fail(mark, "an anchor (&name)", "the value itself; anchors and aliases are not supported");
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    // "?" and "!" are yaml-cpp's marks for plain and quoted values without a tag.
    if (!tag.empty() && tag != "?" && tag != "!") {
      fail(mark, fmt::format("the tag \"{}\"", tag), "a value without tag");
    }
  }

  /// A file holds none, but the escapes of quoted values can write them.
  void refuse_control_characters(const YAML::Mark& mark, std::string_view value) const {
    for (std::size_t at = 0, length = 0; at < value.size(); at += length) {
      length = character_length(value, at);
      if (length == 0) fail(mark, "a value with a control character", "a value of letters, digits and signs");
    }
  }

  void take_key(const YAML::Mark& mark, const YamlNode& node) {
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
  YamlNode* add(const YAML::Mark& mark, YamlNode node) {
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

  void open(const YAML::Mark& mark, YamlNode node) {
    if (stack_.size() >= deepest_nesting) {
      fail(mark, fmt::format("nested deeper than {} levels", deepest_nesting), "a flatter structure");
    }
    stack_.push_back({add(mark, std::move(node)), false});
  }

  std::string file_;
  bool started_ = false;
  std::size_t values_ = 0;
  YamlNode root_;
  std::vector<Level> stack_;
};

/// yaml-cpp keeps all that follows an open bracket until it knows whether a key ends there, some 250 bytes a value,
/// before it tells the builder of the first: what the builder would refuse is refused before. Brackets and commas of
/// quoted texts count as well: none needs so many.
void refuse_bracket_bombs(std::string_view text, const std::string& file) {
  std::ptrdiff_t open = 0;
  std::size_t values = 0;
  const auto refuse = [&](std::size_t at, std::string got, std::string expected) {
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    throw ScenarioError({file, static_cast<int>(line), 1}, "", std::move(got), std::move(expected));
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool opens = c == '[' || c == '{';
    if (opens) ++open;
    if (opens || (c == ',' && open > 0)) ++values;
    if (c == ']' || c == '}') open = std::max<std::ptrdiff_t>(open - 1, 0);
    if (open > most_open_brackets) {
      refuse(at, fmt::format("nested deeper than {} levels", deepest_nesting),
             "every bracket closed; a flatter structure");
    }
    if (values > most_values)
      refuse(at, fmt::format("more than {} values", most_values), "a scenario of reasonable size");
  }
}

void refuse_long_lines(std::string_view text, const std::string& file) {
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end - begin > longest_line) {
      throw ScenarioError({file, line, 1}, "", fmt::format("a line of {} bytes", end - begin),
                          fmt::format("lines of at most {}", longest_line));
    }
    begin = end + 1;
  }
}

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

[[noreturn]] void rethrow_yaml_error(const YAML::Exception& error, std::string_view text, const std::string& file) {
  SourcePosition where{file, error.mark.line + 1, error.mark.column + 1};
  if (const int line = line_with_tab_indent(text, where.line); line > 0) {
    throw ScenarioError({file, line, 1}, "", "this line is indented with a tab", "spaces for indentation");
  }
  if (error.msg == YAML::ErrorMsg::MAP_VALUE) {
    throw ScenarioError(where, "", "a second \": \" in one line", "quotes around text that contains \": \"");
  }
  throw ScenarioError(where, "", fmt::format("not valid YAML: {}", error.msg),
                      "`key: value` lines, indented by spaces, with balanced quotes and brackets");
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
  YamlNode* node = this;
  const std::vector<std::string> words = split(dotted_key, '.');
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    YamlEntry* entry = node->find(words[i]);
    if (entry == nullptr) return;
    node = &entry->value;
  }
  std::erase_if(node->entries, [&](const YamlEntry& entry) { return entry.key == words.back(); });
}

std::string_view YamlNode::kind_name() const {
  switch (kind) {
    case Kind::scalar:
      return "a value";
    case Kind::sequence:
      return "a list";
    case Kind::mapping:
      return "a mapping";
    case Kind::null:
      break;
  }
  return "nothing";
}

YamlNode yaml_scalar(std::string text, SourcePosition where) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.scalar = std::move(text);
  node.where = std::move(where);
  return node;
}

YamlNode yaml_mapping(SourcePosition where) {
  YamlNode node;
  node.kind = YamlNode::Kind::mapping;
  node.where = std::move(where);
  return node;
}

YamlNode parse_yaml(std::string_view text, const std::string& file) {
  require_text(text, file);
  refuse_bracket_bombs(text, file);
  refuse_long_lines(text, file);
  TreeBuilder builder(file);
  try {
    // yaml-cpp 0.7 overlooks an unclosed quote when a line end follows it.
    std::istringstream stream{std::string(text.substr(0, text.find_last_not_of(" \t\r\n") + 1))};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      throw ScenarioError({file, 0, 0}, "", "the file is empty", "a YAML mapping with `cluster:` and `workload:`");
    }
    parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& error) {
    rethrow_yaml_error(error, text, file);
  }
  return std::move(builder).take();
}

const YamlNode& cached_yaml_file(const std::string& path) {
  const FileState file = look_at(path);
  std::vector<Documents::Version>& versions = session().part<Documents>().versions[path];
  if (!file.is_there() || versions.empty() || versions.back().file != file) {
    versions.push_back({file, std::make_unique<const YamlNode>(parse_yaml(read_text_file(path), path))});
  }
  return *versions.back().document;
}

}  // namespace foretrain
