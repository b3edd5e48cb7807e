#include "validate/replay/graph_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "validate/replay/fields.hpp"

namespace foretrain::replay {

namespace {

constexpr int version = 1;
constexpr int most = std::numeric_limits<int>::max() - 1;
constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
constexpr int most_gpus = 1024;

const std::vector<std::string> resource_words = {"stream", "copies", "host", "path", "framework"};
const std::vector<std::string> category_words = {"compute", "communication", "optimizer", "host", "data"};

template <typename E>
E place_of(const std::string& word, const std::vector<std::string>& words) {
  std::size_t place = 0;
  while (words[place] != word) ++place;
  return static_cast<E>(place);
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

std::string bytes_text(Bytes size) { return std::to_string(std::llround(size.value())); }

const char* flag_text(bool value) { return value ? "true" : "false"; }

/// A piece of work as a line: its kind's word, then its keys.
class LineWriter {
 public:
  static std::string line_of(const Work& work) {
    return std::visit(
        [](const auto& one) {
          LineWriter writer;
          writer.line_ = one.word;
          one.keys(one, writer);
          return writer.line_;
        },
        work);
  }

  void text(const char* key, const std::string& value) { add(key, quoted(value)); }
  void place(const char* key, const std::string& value) { text(key, value); }
  void count(const char* key, int value, int /*least*/, int /*highest*/ = 0) { add(key, std::to_string(value)); }
  void all_gpus(const char* key, int value) { add(key, std::to_string(value)); }
  void number(const char* key, Seconds value) { add(key, number_text(value.value())); }
  void bytes(const char* key, Bytes value, int /*least*/) { add(key, bytes_text(value)); }
  void flag(const char* key, bool value) { add(key, flag_text(value)); }
  template <typename Words>
  void one_of(const char* key, const std::string& value, const Words& /*words*/) {
    add(key, value);
  }
  template <typename E, typename Words>
  void one_of(const char* key, E value, const Words& words) {
    add(key, words[static_cast<std::size_t>(value)]);
  }
  void rest(const std::map<std::string, std::string>& fields) {
    for (const auto& [key, value] : fields) add(key, quoted(value));
  }

 private:
  void add(const std::string& key, const std::string& value) { line_ += " " + key + "=" + value; }
  std::string line_;
};

/// The same back.
class LineReader {
 public:
  LineReader(Fields& fields, int gpus) : fields_(fields), gpus_(gpus) {}

  /// A piece of the kind whose word the line begins with; there is one.
  template <std::size_t kind = 0>
  Work read() {
    using Kind = std::variant_alternative_t<kind, Work>;
    if constexpr (kind + 1 < std::variant_size_v<Work>) {
      if (fields_.keyword() != Kind::word) return read<kind + 1>();
    }
    Kind work;
    Kind::keys(work, *this);
    return work;
  }

  void text(const char* key, std::string& value) { value = fields_.text(key); }
  void place(const char* key, std::string& value) {
    value = fields_.text(key);
    const bool gpu = value.starts_with("gpu");
    const std::string number = value.substr(std::min<std::size_t>(3, value.size()));
    const bool digits = number.size() < 5 && number.find_first_not_of("0123456789") == std::string::npos;
    const bool known = digits && (gpu ? !number.empty() && std::stoi(number) < gpus_ : value.starts_with("cpu"));
    if (!known) fields_.fail(std::string(key) + "=" + value, "cpu, or gpu0 to gpu" + std::to_string(gpus_ - 1));
  }
  void count(const char* key, int& value, int least, int highest = most) {
    value = static_cast<int>(fields_.integer(key, least, highest));
  }
  void all_gpus(const char* key, int& value) { value = static_cast<int>(fields_.integer(key, gpus_, gpus_)); }
  void number(const char* key, Seconds& value) { value = Seconds(fields_.number(key)); }
  void bytes(const char* key, Bytes& value, int least) {
    value = Bytes(static_cast<double>(fields_.integer(key, least, most_bytes)));
  }
  void flag(const char* key, bool& value) { value = fields_.flag(key); }
  template <typename Words>
  void one_of(const char* key, std::string& value, const Words& words) {
    value = fields_.one_of(key, {words.begin(), words.end()});
  }
  template <typename E, typename Words>
  void one_of(const char* key, E& value, const Words& words) {
    const std::vector<std::string> known(words.begin(), words.end());
    value = place_of<E>(fields_.one_of(key, known), known);
  }
  void rest(std::map<std::string, std::string>& fields) { fields = fields_.rest(); }

 private:
  Fields& fields_;
  int gpus_;
};

template <std::size_t... kind>
std::vector<std::string> words_of_work(std::index_sequence<kind...> /*all*/) {
  return {std::string(std::variant_alternative_t<kind, Work>::word)...};
}

/// Reads line by line; what follows a block is the block's.
class GraphReader {
 public:
  GraphReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Graph read() && {
    Fields first = line("foretrain-graph 1 at its beginning");
    if (first.keyword() != "foretrain-graph" || first.words().size() != 1) {
      first.fail("this is no exported task graph", "a file of foretrain replay --export");
    }
    if (first.words().front() != std::to_string(version)) {
      first.fail("version " + first.words().front(), "version 1: export it again with this foretrain");
    }
    first.finish();
    read_header();
    for (;;) {
      Fields fields = line("the line end lines=… that closes the file: it was cut off");
      if (fields.keyword() == "end") {
        read_end(fields);
        return std::move(graph_);
      }
      read_line(fields);
      fields.finish();
    }
  }

 private:
  /// The next line that is no comment.
  Fields line(const std::string& expected) {
    while (at_ < text_.size()) {
      const std::size_t end = text_.find('\n', at_);
      if (end == std::string_view::npos) break;  // a last line without its end was cut off
      const std::string_view found = text_.substr(at_, end - at_);
      at_ = end + 1;
      ++line_;
      if (!found.empty() && found.front() != '#') return {found, file_ + ":" + std::to_string(line_)};
    }
    throw GraphFileError(file_ + ":" + std::to_string(line_ + 1) + ": the file ends here; " + expected);
  }

  void read_header() {
    Fields fields = line("graph name=…");
    if (fields.keyword() != "graph") fields.fail("not the graph's name", "graph name=…");
    graph_.name = fields.text("name");
    if (graph_.name.empty() || graph_.name != file_name_of(graph_.name)) {
      fields.fail("name=" + graph_.name, "letters and digits with dashes between them");
    }
    graph_.scenario = fields.text("scenario");
    graph_.hardware = fields.text("hardware");
    graph_.fidelity = fields.text("fidelity");
    graph_.gpus = static_cast<int>(fields.integer("gpus", 1, most_gpus));
    graph_.replicated = fields.flag("replicated");
    graph_.capture = fields.flag("capture");
    graph_.predicted = fields.number("predicted");
    fields.finish();
  }

  void read_line(Fields& fields) {
    const std::string& keyword = fields.keyword();
    if (keyword == "resource") return read_resource(fields);
    if (keyword == "block") return read_block(fields);
    if (keyword == "task") return read_task(fields);
    const auto words = words_of_work(std::make_index_sequence<std::variant_size_v<Work>>());
    if (std::find(words.begin(), words.end(), keyword) == words.end()) {
      std::string known;
      for (const std::string& word : words) known += word + ", ";
      fields.fail("unknown line", "resource, block, " + known + "task or end");
    }
    if (graph_.blocks.empty() || !graph_.tasks.empty())
      fields.fail("not behind a block", "the block that it belongs to");
    graph_.blocks.back().work.push_back(LineReader(fields, graph_.gpus).read());
  }

  /// The number behind the keyword must be the next one.
  void check_number(const Fields& fields, std::size_t next) const {
    const std::string expected = std::to_string(next);
    if (fields.words() != std::vector{expected}) {
      fields.fail("number " + (fields.words().empty() ? "missing" : fields.words().front()), expected);
    }
  }

  void read_resource(Fields& fields) {
    check_number(fields, graph_.resources.size());
    Resource resource;
    resource.kind = place_of<Resource::Kind>(fields.one_of("kind", resource_words), resource_words);
    resource.device = static_cast<int>(fields.integer("device", 0, graph_.gpus - 1));
    resource.name = fields.text("name");
    graph_.resources.push_back(std::move(resource));
  }

  void read_block(Fields& fields) {
    check_number(fields, graph_.blocks.size());
    if (!graph_.tasks.empty()) fields.fail("behind a task", "all blocks before all tasks");
    Block block;
    block.category = fields.one_of("category", category_words);
    block.predicted = fields.number("predicted");
    block.name = fields.text("name");
    graph_.blocks.push_back(std::move(block));
  }

  void read_task(Fields& fields) {
    const std::size_t number = graph_.tasks.size();
    check_number(fields, number);
    Task task;
    task.block = static_cast<int>(fields.integer("block", 0, static_cast<int>(graph_.blocks.size()) - 1));
    task.resource = static_cast<int>(fields.integer("resource", 0, static_cast<int>(graph_.resources.size()) - 1));
    task.start = fields.number("start");
    task.end = fields.number("end");
    if (task.end < task.start) fields.fail("an end before its start", "start ≤ end");
    task.after = fields.list("after", static_cast<int>(number) - 1);
    check_place(fields, task);
    graph_.tasks.push_back(std::move(task));
  }

  /// Whether the resource can do what the block asks for.
  void check_place(const Fields& fields, const Task& task) const {
    const Resource& resource = graph_.resources[static_cast<std::size_t>(task.resource)];
    for (const Work& work : graph_.blocks[static_cast<std::size_t>(task.block)].work) {
      const auto* host = std::get_if<HostWork>(&work);
      const bool on_host = resource.on_host();
      const bool fits = resource.kind == Resource::Kind::path
                            ? host != nullptr && host->action == HostWork::Action::launch
                            : (host != nullptr && host->action != HostWork::Action::launch) == on_host;
      const bool kernel = std::holds_alternative<KernelWork>(work);
      if (fits && !(kernel && resource.kind == Resource::Kind::copies)) continue;
      fields.fail("resource " + resource.name + " cannot do block " + std::to_string(task.block),
                  "a resource for this kind of work");
    }
  }

  void read_end(Fields& fields) {
    const std::int64_t lines = fields.integer("lines", 0, std::numeric_limits<std::int64_t>::max());
    fields.finish();
    if (lines != line_) {
      fields.fail("line " + std::to_string(line_) + " of " + std::to_string(lines), "a file as it was exported");
    }
    if (at_ != text_.size()) fields.fail("something behind the end", "nothing behind it");
    if (graph_.tasks.empty()) fields.fail("no tasks", "at least one");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::int64_t line_ = 0;
  Graph graph_;
};

}  // namespace

std::string file_name_of(std::string_view name) {
  std::string file;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (letter) {
      file += c;
    } else if (!file.empty() && file.back() != '-') {
      file += '-';
    }
  }
  while (!file.empty() && (file.back() == '-' || file.back() == '.')) file.pop_back();
  return file;
}

std::string to_text(const Graph& graph) {
  std::vector<std::string> lines = {"foretrain-graph " + std::to_string(version)};
  lines.push_back("graph name=" + quoted(graph.name) + " scenario=" + quoted(graph.scenario) +
                  " hardware=" + quoted(graph.hardware) + " fidelity=" + quoted(graph.fidelity) +
                  " gpus=" + std::to_string(graph.gpus) + " replicated=" + flag_text(graph.replicated) +
                  " capture=" + flag_text(graph.capture) + " predicted=" + number_text(graph.predicted));
  for (std::size_t i = 0; i < graph.resources.size(); ++i) {
    const Resource& r = graph.resources[i];
    lines.push_back("resource " + std::to_string(i) + " kind=" + resource_words[static_cast<std::size_t>(r.kind)] +
                    " device=" + std::to_string(r.device) + " name=" + quoted(r.name));
  }
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    const Block& b = graph.blocks[i];
    lines.push_back("block " + std::to_string(i) + " category=" + b.category +
                    " predicted=" + number_text(b.predicted) + " name=" + quoted(b.name));
    for (const Work& work : b.work) lines.push_back(LineWriter::line_of(work));
  }
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& t = graph.tasks[i];
    std::string line = "task " + std::to_string(i) + " block=" + std::to_string(t.block) +
                       " resource=" + std::to_string(t.resource) + " start=" + number_text(t.start) +
                       " end=" + number_text(t.end);
    for (std::size_t k = 0; k < t.after.size(); ++k) line += (k == 0 ? " after=" : ",") + std::to_string(t.after[k]);
    lines.push_back(std::move(line));
  }
  lines.push_back("end lines=" + std::to_string(lines.size() + 1));
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Graph parse_graph(std::string_view text, const std::string& file) { return GraphReader(text, file).read(); }

Graph read_graph(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) throw GraphFileError(path + ": cannot be read; the path of an exported graph");
  return parse_graph(text, path);
}

}  // namespace foretrain::replay
