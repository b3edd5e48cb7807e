// An execution trace of MLCommons Chakra, one rank's, as a list of tasks: what computes runs on a stream, what moves
// data as copies.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "model/base/text.hpp"
#include "reports/import/chakra_trace.hpp"
#include "reports/import/draft.hpp"
#include "reports/import/importer.hpp"

namespace foretrain {

namespace {

constexpr double ranks = 8.0;  ///< of a collective: traces of one rank do not tell
constexpr double most_bytes = 1e15;

/// A task's place, its work and what is assumed of it.
struct ImportedTask {
  std::string on;
  YamlNode run;
  std::string comment;
};

YamlNode run_of(const std::string& kind, Cells cells, const SourcePosition& where) {
  cells.insert(cells.begin(), {"kind", kind});
  return yaml_entries(cells, where);
}

/// All whole numbers of "[[4096, 1024], [1024, 512]]", list by list; nothing where a shape has no two numbers.
std::optional<std::vector<std::vector<std::int64_t>>> matrices_in(const std::string& shapes) {
  std::vector<std::vector<std::int64_t>> lists;
  std::size_t at = 0;
  while ((at = shapes.find_first_of("0123456789", at)) != std::string::npos) {
    const std::size_t open = shapes.rfind('[', at), close = shapes.find(']', at);
    if (open == std::string::npos || close == std::string::npos) return std::nullopt;
    std::vector<std::int64_t> list;
    for (const std::string& piece : split(shapes.substr(open + 1, close - open - 1), ',')) {
      const auto number = number_behind("n" + std::string(trim(piece)), "n");
      if (!number || *number < 1) return std::nullopt;
      list.push_back(*number);
    }
    lists.push_back(std::move(list));
    at = close;
  }
  return lists;
}

/// A product whose operands' shapes are recorded: mm, addmm, bmm.
std::optional<Cells> matmul_of(const ChakraNode& node) {
  const std::string name = to_lower(node.name);
  if (name.find("mm") == std::string::npos && name.find("matmul") == std::string::npos) return std::nullopt;
  const auto shapes = matrices_in(node.input_shapes);
  if (!shapes) return std::nullopt;
  std::vector<std::vector<std::int64_t>> operands;
  for (const auto& shape : *shapes) {
    if (shape.size() == 2 || shape.size() == 3) operands.push_back(shape);
  }
  if (operands.size() < 2) return std::nullopt;
  const auto &a = operands[operands.size() - 2], &b = operands.back();
  if (a.size() != b.size() || a.back() != b[b.size() - 2]) return std::nullopt;
  const bool half = node.input_types.find("BFloat16") != std::string::npos;
  Cells cells = {{"m", std::to_string(a[a.size() - 2])},
                 {"n", std::to_string(b.back())},
                 {"k", std::to_string(a.back())},
                 {"precision", half ? "bf16" : "fp32"}};
  if (a.size() == 3) cells.insert(cells.begin(), {"batch", std::to_string(a.front())});
  return cells;
}

/// A processor's operators are as long as they were recorded. A GPU's products are predicted by their shapes, what has
/// a number of operations by these, all else is as long as it was recorded.
ImportedTask computation(const ChakraNode& node, const SourcePosition& where) {
  const bool on_cpu = node.attributes.contains("is_cpu_op") && node.attributes.at("is_cpu_op") != "false" &&
                      node.attributes.at("is_cpu_op") != "0";
  const std::string on = on_cpu ? "cpu" : "gpu0:stream1";
  if (!on_cpu) {
    if (const auto cells = matmul_of(node)) return {on, run_of("matmul", *cells, where), "by its operands' shapes"};
  }
  const std::uint64_t operations = node.number("num_ops"), bytes = node.number("tensor_size");
  if (!on_cpu && operations > 0 && node.microseconds == 0) {
    const std::uint64_t elements = std::clamp<std::uint64_t>(bytes / 4, 1, 1'000'000'000'000);
    const double each = std::min(static_cast<double>(operations) / static_cast<double>(elements), 1e12);
    return {on,
            run_of("elementwise",
                   {{"elements", std::to_string(elements)}, {"flops_per_element", fmt::format("{:.9g}", each)}}, where),
            "num_ops operations on tensor_size bytes"};
  }
  const std::uint64_t time = std::min<std::uint64_t>(node.microseconds, 1'000'000'000'000);
  return {on, yaml_entries({{"sleep", fmt::format("{} us", time)}}, where), "as long as it was recorded"};
}

/// Bytes that a rank sends of a ring among `ranks`, for each byte of the message; nothing for a barrier.
double sent_of(std::uint64_t kind) {
  const double share = (ranks - 1.0) / ranks;
  switch (kind) {
    case 0:  // all-reduce
      return 2.0 * share;
    case 9:  // barrier
      return 0.0;
    case 1:  // reduce, broadcast
    case 5:
      return 1.0;
    default:
      return share;
  }
}

ImportedTask transfer(const ChakraNode& node, const SourcePosition& where) {
  using enum ChakraNode::Type;
  const bool load = node.type == mem_load, store = node.type == mem_store, collective = node.type == comm_coll;
  double bytes = static_cast<double>(node.number(load || store ? "tensor_size" : "comm_size"));
  std::string comment = load || store ? "tensor_size" : "comm_size";
  if (collective) {
    bytes *= sent_of(node.number("comm_type"));
    comment = fmt::format("a collective: what a rank sends of a ring of {:.0f}, assumed", ranks);
  }
  const std::string from = load ? "cpu" : node.type == comm_recv ? "gpu1" : "gpu0";
  const std::string to = load || node.type == comm_recv ? "gpu0" : store ? "cpu" : "gpu1";
  const std::string on = load ? "gpu0:h2d" : store ? "gpu0:d2h" : node.type == comm_recv ? "gpu1:p2p" : "gpu0:p2p";
  const Cells cells = {{"from", from}, {"to", to}, {"size", fmt::format("{:.0f} B", std::min(bytes, most_bytes))}};
  return {on, run_of("copy", cells, where), comment};
}

/// Every node behind those that it waits for; among those that are ready the one that stands first in the file. Those
/// that wait for themselves are left out.
std::vector<std::size_t> in_order(const std::vector<std::vector<std::size_t>>& after) {
  std::vector<std::vector<std::size_t>> before(after.size());
  std::vector<std::size_t> waits(after.size());
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < after.size(); ++i) {
    for (const std::size_t other : after[i]) before[other].push_back(i);
    waits[i] = after[i].size();
    if (waits[i] == 0) ready.push(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const std::size_t behind : before[next]) {
      if (--waits[behind] == 0) ready.push(behind);
    }
  }
  return order;
}

/// Indices of the nodes that each waits for. Those that the trace does not have are left out, and counted.
std::vector<std::vector<std::size_t>> dependencies(const std::vector<ChakraNode>& nodes, bool control,
                                                   const std::string& file, int& missing) {
  missing = 0;
  std::map<std::uint64_t, std::size_t> places;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!places.emplace(nodes[i].id, i).second) {
      throw ScenarioError({file, 0, 0}, fmt::format("node {}", nodes[i].id), "a second node of this number", "its own");
    }
  }
  std::vector<std::vector<std::size_t>> after(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::set<std::size_t> known;
    const auto add = [&](std::uint64_t id) {
      const auto found = places.find(id);
      if (found == places.end()) {
        ++missing;
      } else {
        known.insert(found->second);
      }
    };
    std::ranges::for_each(nodes[i].data, add);
    if (control) std::ranges::for_each(nodes[i].control, add);
    after[i].assign(known.begin(), known.end());
  }
  return after;
}

}  // namespace

std::string import_chakra(const ImportInput& input) {
  std::vector<ChakraNode> nodes = read_chakra(input.text, input.file);
  Draft draft(input);
  int missing = 0;
  auto after = dependencies(nodes, true, input.file, missing);
  std::vector<std::size_t> order = in_order(after);
  if (order.size() < nodes.size()) {
    draft.note_assumed("workload.tasks",
                       "ctrl_deps and data_deps make a circle: data_deps alone are followed, as other simulators do");
    after = dependencies(nodes, false, input.file, missing);
    order = in_order(after);
  }
  if (order.size() < nodes.size()) {
    std::vector<bool> ordered(nodes.size(), false);
    for (const std::size_t i : order) ordered[i] = true;
    const auto stuck = static_cast<std::size_t>(std::ranges::find(ordered, false) - ordered.begin());
    throw ScenarioError({input.file, 0, 0}, fmt::format("node {}", nodes[stuck].id), "it waits for itself",
                        "data_deps without circles");
  }
  draft.set("name", file_stem(input), draft.nowhere(), "");
  draft.assume("cluster.node", "dgx-h100", "the trace does not name the machine; --set cluster.node=NAME");
  if (missing > 0) draft.note(fmt::format("{} dependencies are on nodes that the trace does not have.", missing));
  const SourcePosition where = draft.nowhere();
  using enum ChakraNode::Type;
  for (const std::size_t i : order) {
    const ChakraNode& node = nodes[i];
    const bool moves = node.type == mem_load || node.type == mem_store || node.type == comm_send ||
                       node.type == comm_recv || node.type == comm_coll;
    ImportedTask task = moves ? transfer(node, where) : computation(node, where);
    YamlNode entry = yaml_nodes({{"id", yaml_scalar(fmt::format("n{}", node.id), where)},
                                 {"on", yaml_scalar(task.on, where)},
                                 {"run", std::move(task.run)}},
                                where);
    std::vector<std::string> ids;
    for (const std::size_t other : after[i]) ids.push_back(fmt::format("n{}", nodes[other].id));
    if (!ids.empty()) entry.entries.push_back({"after", where, yaml_list(ids, where)});
    constexpr std::size_t longest_name = 80;
    draft.append("workload.tasks", std::move(entry), where, shortened(node.name, longest_name) + ": " + task.comment);
  }
  draft.note("Tasks are those of one rank.");
  return finished_scenario(draft, "chakra");
}

}  // namespace foretrain
