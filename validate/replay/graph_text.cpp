#include "validate/replay/graph_text.hpp"

#include <array>
#include <concepts>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>

#include "validate/replay/line.hpp"

namespace foretrain::replay {

namespace {

constexpr int version = 1;
constexpr int most_gpus = 1024;

constexpr std::array resource_words = {"stream", "copies", "host", "path", "framework"};
constexpr std::array category_words = {"compute", "communication", "optimizer", "host", "data"};

// The keys of each kind of line, in their order; of a Line, which writes or reads them. Numbers lie within what the
// graph holds so far.

template <typename Self, typename Kind>
concept Is = std::same_as<std::remove_const_t<Self>, Kind>;

void add_keys(Is<Graph> auto& graph, auto& line) {
  line.text("name", graph.name);
  line.text("scenario", graph.scenario);
  line.text("hardware", graph.hardware);
  line.text("fidelity", graph.fidelity);
  line.count("gpus", graph.gpus, 1, most_gpus);
  line.flag("replicated", graph.replicated);
  line.flag("capture", graph.capture);
  line.number("predicted", graph.predicted);
}

void add_keys(Is<Resource> auto& resource, auto& line, const Graph& graph) {
  line.one_of("kind", resource.kind, resource_words);
  line.count("device", resource.device, 0, graph.gpus - 1);
  line.text("name", resource.name);
}

void add_keys(Is<Block> auto& block, auto& line, const Graph& /*graph*/) {
  line.one_of("category", block.category, category_words);
  line.number("predicted", block.predicted);
  line.text("name", block.name);
}

void add_keys(Is<Task> auto& task, auto& line, const Graph& graph) {
  line.count("block", task.block, 0, static_cast<int>(graph.blocks.size()) - 1);
  line.count("resource", task.resource, 0, static_cast<int>(graph.resources.size()) - 1);
  line.number("start", task.start);
  line.number("end", task.end);
  line.list("after", task.after, static_cast<int>(graph.tasks.size()) - 1);
}

template <typename Self>
std::string line_of(const char* keyword, std::size_t number, const Self& self, const Graph& graph) {
  LineWriter writer(keyword + (" " + std::to_string(number)));
  add_keys(self, writer, graph);
  return writer.line();
}

std::string line_of(const Work& work) {
  return std::visit(
      [](const auto& one) {
        LineWriter writer{std::string(one.word)};
        one.keys(one, writer);
        return writer.line();
      },
      work);
}

/// A piece of the kind whose word the line begins with, if there is one.
template <typename... Kinds>
std::optional<Work> work_of(LineReader& line, const std::variant<Kinds...>& /*kinds*/) {
  std::optional<Work> work;
  const auto read = [&](auto kind) {
    if (line.keyword() != kind.word) return;
    kind.keys(kind, line);
    work = std::move(kind);
  };
  (read(Kinds()), ...);
  return work;
}

/// Reads line by line; what follows a block is the block's.
class GraphReader {
 public:
  GraphReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Graph read() && {
    LineReader first = line("foretrain-graph 1 at its beginning");
    if (first.keyword() != "foretrain-graph" || first.words().size() != 1) {
      first.fail("this is no exported task graph", "a file of foretrain replay --export");
    }
    if (first.words().front() != std::to_string(version)) {
      first.fail("version " + first.words().front(), "version 1: export it again with this foretrain");
    }
    first.finish();
    read_header();
    for (;;) {
      LineReader next = line("the line end lines=… that closes the file: it was cut off");
      if (next.keyword() == "end") {
        read_end(next);
        return std::move(graph_);
      }
      read_line(next);
      next.finish();
    }
  }

 private:
  /// The next line that is no comment.
  LineReader line(const std::string& expected) {
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
    LineReader header = line("graph name=…");
    if (header.keyword() != "graph") header.fail("not the graph's name", "graph name=…");
    add_keys(graph_, header);
    if (graph_.name.empty() || graph_.name != file_name_of(graph_.name)) {
      header.fail("name=" + graph_.name, "letters and digits with dashes between them");
    }
    header.finish();
  }

  void read_line(LineReader& line) {
    line.set_gpus(graph_.gpus);
    if (line.keyword() == "resource") return add(graph_.resources, line);
    if (line.keyword() == "block") {
      if (!graph_.tasks.empty()) line.fail("behind a task", "all blocks before all tasks");
      return add(graph_.blocks, line);
    }
    if (line.keyword() == "task") {
      add(graph_.tasks, line);
      return check(line, graph_.tasks.back());
    }
    std::optional<Work> work = work_of(line, Work());
    if (!work) line.fail("unknown line", "resource, block, kernel, copy, collective, host, task or end");
    if (graph_.blocks.empty() || !graph_.tasks.empty()) line.fail("not behind a block", "the block that it belongs to");
    graph_.blocks.back().work.push_back(std::move(*work));
  }

  /// The number behind the keyword must be the next one.
  template <typename Kind>
  void add(std::vector<Kind>& list, LineReader& line) {
    const std::string expected = std::to_string(list.size());
    if (line.words() != std::vector{expected}) {
      line.fail("number " + (line.words().empty() ? "missing" : line.words().front()), expected);
    }
    Kind one;
    add_keys(one, line, graph_);
    list.push_back(std::move(one));
  }

  /// Whether the resource can do what the block asks for.
  void check(const LineReader& line, const Task& task) const {
    if (task.end < task.start) line.fail("an end before its start", "start ≤ end");
    const Resource& resource = graph_.resources[static_cast<std::size_t>(task.resource)];
    for (const Work& work : graph_.blocks[static_cast<std::size_t>(task.block)].work) {
      const auto* host = std::get_if<HostWork>(&work);
      const bool on_host = resource.on_host();
      const bool fits = resource.kind == Resource::Kind::path
                            ? host != nullptr && host->action == HostWork::Action::launch
                            : (host != nullptr && host->action != HostWork::Action::launch) == on_host;
      const bool kernel = std::holds_alternative<KernelWork>(work);
      if (fits && !(kernel && resource.kind == Resource::Kind::copies)) continue;
      line.fail("resource " + resource.name + " cannot do block " + std::to_string(task.block),
                "a resource for this kind of work");
    }
  }

  void read_end(LineReader& line) {
    const std::int64_t lines = line.integer("lines", 0, std::numeric_limits<std::int64_t>::max());
    line.finish();
    if (lines != line_) {
      line.fail("line " + std::to_string(line_) + " of " + std::to_string(lines), "a file as it was exported");
    }
    if (at_ != text_.size()) line.fail("something behind the end", "nothing behind it");
    if (graph_.tasks.empty()) line.fail("no tasks", "at least one");
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
  LineWriter header("graph");
  add_keys(graph, header);
  std::vector<std::string> lines = {"foretrain-graph " + std::to_string(version), header.line()};
  for (std::size_t i = 0; i < graph.resources.size(); ++i) {
    lines.push_back(line_of("resource", i, graph.resources[i], graph));
  }
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    lines.push_back(line_of("block", i, graph.blocks[i], graph));
    for (const Work& work : graph.blocks[i].work) lines.push_back(line_of(work));
  }
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) lines.push_back(line_of("task", i, graph.tasks[i], graph));
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
