#include "model/scenario/plain_yaml.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace foretrain {

namespace {

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class PlainReader {
 public:
  PlainReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::optional<YamlNode> read() {
    try {
      require(text_.size() < longest && text_.find_first_of("\t\r") == std::string_view::npos);
      next_line();
      YamlNode root = block(-1);
      require(at_ == text_.size());
      return root;
    } catch (const Unsure&) {
      return std::nullopt;
    }
  }

 private:
  struct Unsure {};
  static void require(bool sure) {
    if (!sure) throw Unsure();
  }

  [[nodiscard]] char peek(std::size_t further = 0) const {
    return at_ + further < text_.size() ? text_[at_ + further] : '\n';
  }
  [[nodiscard]] bool ends_key(std::size_t at) const {
    return at < text_.size() && text_[at] == ':' &&
           (at + 1 == text_.size() || text_[at + 1] == ' ' || text_[at + 1] == '\n');
  }
  /// Columns count characters; those of a line are asked for one after the other.
  SourcePosition here() {
    const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
    column_ += static_cast<int>(std::ranges::count_if(text_.substr(counted_, at_ - counted_), begins));
    counted_ = at_;
    return {file_, line_, column_};
  }

  void skip_spaces() { at_ = std::min(text_.find_first_not_of(' ', at_), text_.size()); }

  /// From the beginning of a line to what the next one holds that holds anything but a comment.
  void next_line() {
    std::size_t begin = at_;
    for (skip_spaces(); at_ < text_.size() && (peek() == '\n' || peek() == '#'); skip_spaces()) begin = leave_line();
    indent_ = at_ == text_.size() ? -1 : static_cast<int>(at_ - begin);
    counted_ = begin;
    column_ = 1;
  }
  std::size_t leave_line() {
    ++line_;
    return at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
  }
  void end_line() {
    const std::size_t behind = at_;
    skip_spaces();
    require(peek() == '\n' || (peek() == '#' && at_ > behind));
    if (at_ < text_.size()) leave_line();
    next_line();
  }

  /// What stands below something that is indented by `above`.
  YamlNode block(int above) {
    const int own = indent_;
    require(own > above && own < deepest);
    if (peek() == '-' && peek(1) == ' ') return sequence(own);
    return begins_key() ? mapping(own) : rest_of_line(above);
  }
  YamlNode sequence(int own) {
    YamlNode node = collection(YamlNode::Kind::sequence, here());
    while (indent_ == own) {
      require(peek() == '-' && peek(1) == ' ');
      const std::size_t dash = at_++;
      skip_spaces();
      indent_ += static_cast<int>(at_ - dash);
      node.items.push_back(begins_key() ? block(own) : rest_of_line(own));
    }
    return node;
  }
  YamlNode mapping(int own) {
    YamlNode node = collection(YamlNode::Kind::mapping, here());
    while (indent_ == own) {
      YamlEntry& entry = add_key(node);
      const std::size_t behind = at_;
      skip_spaces();
      const bool below = peek() == '\n' || (peek() == '#' && at_ > behind);
      if (below) end_line();
      entry.value = below ? block(own) : rest_of_line(own);
    }
    return node;
  }
  YamlNode rest_of_line(int above) {
    YamlNode node = value(0);
    end_line();
    require(indent_ <= above);  // or it goes on in the next line
    return node;
  }

  [[nodiscard]] std::size_t key_end() const {
    std::size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || text_[end] == '.' || text_[end] == '-')) ++end;
    return end;
  }
  [[nodiscard]] bool begins_key() const { return is_letter(peek()) && ends_key(key_end()); }
  YamlEntry& add_key(YamlNode& mapping) {
    require(begins_key());
    const std::string key(text_.substr(at_, key_end() - at_));
    require(!is_nothing(key) && key.size() < longest_key && mapping.find(key) == nullptr &&
            mapping.entries.size() < most_keys);
    mapping.entries.push_back({key, here(), {}});
    at_ += key.size() + 1;
    return mapping.entries.back();
  }

  /// `depth`: of the brackets around it.
  YamlNode value(int depth) {
    require(depth < deepest_brackets);
    const SourcePosition where = here();
    if (peek() != '{' && peek() != '[') return scalar(depth > 0, where);
    const bool is_mapping = peek() == '{';
    const char end = is_mapping ? '}' : ']';
    YamlNode node = collection(is_mapping ? YamlNode::Kind::mapping : YamlNode::Kind::sequence, where);
    ++at_;
    skip_spaces();
    for (bool more = peek() != end; more;) {
      YamlNode& member = is_mapping ? add_key(node).value : node.items.emplace_back();
      skip_spaces();
      member = value(depth + 1);
      skip_spaces();
      more = peek() == ',';
      if (more) ++at_;
      skip_spaces();
    }
    require(peek() == end);
    ++at_;
    return node;
  }
  YamlNode scalar(bool in_brackets, const SourcePosition& where) {
    if (peek() == '"') {
      const std::size_t end = text_.find_first_of("\"\\\n", at_ + 1);
      require(end != std::string_view::npos && text_[end] == '"');
      const std::size_t begin = std::exchange(at_, end + 1) + 1;
      return yaml_scalar(std::string(text_.substr(begin, end - begin)), where);
    }
    const std::size_t begin = at_;
    require(is_letter(peek()) || ((peek() == '-' || peek() == '.') && is_letter(peek(1))));
    for (; peek() != '\n' && !(peek() == '#' && text_[at_ - 1] == ' '); ++at_) {
      if (in_brackets && brackets.find(peek()) != std::string_view::npos) break;
      require(!in_brackets || peek() != '?');
      require(peek() != ':' || (!ends_key(at_) && (!in_brackets || brackets.find(peek(1)) == std::string_view::npos)));
    }
    while (text_[at_ - 1] == ' ') --at_;
    const std::string_view text = text_.substr(begin, at_ - begin);
    return is_nothing(text) ? collection(YamlNode::Kind::null, where) : yaml_scalar(std::string(text), where);
  }
  /// Without its members.
  static YamlNode collection(YamlNode::Kind kind, const SourcePosition& where) {
    YamlNode node = yaml_mapping(where);
    node.kind = kind;
    return node;
  }
  static bool is_nothing(std::string_view text) { return text == "null" || text == "Null" || text == "NULL"; }

  static constexpr std::string_view brackets = ",[]{}";
  // Well below the limits of documents, which libyaml's reader tells of.
  static constexpr std::size_t longest = 150'000, most_keys = 900, longest_key = 100;
  static constexpr int deepest = 40, deepest_brackets = 16;

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, counted_ = 0;  ///< at_: what is read next; counted_: the same of column_
  int line_ = 1, column_ = 1, indent_ = 0;
};

}  // namespace

std::optional<YamlNode> read_plain_yaml(std::string_view text, const std::string& file) {
  return PlainReader(text, file).read();
}

}  // namespace foretrain
