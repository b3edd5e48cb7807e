// The tree of switches that Slurm knows (topology.conf, plugin topology/tree; `scontrol show topology` prints the same
// with levels), as a fabric.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/base/text.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "reports/import/draft.hpp"
#include "reports/import/importer.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_names = 20'000;

struct Switch {
  std::string name;
  std::vector<std::string> nodes, switches;  ///< below it
  SourcePosition where;
};

[[noreturn]] void fail_list(const SourcePosition& where, const std::string& list) {
  throw ScenarioError(where, "", fmt::format("\"{}\" is no list of hosts", list.substr(0, 60)), "tux[0-3,7],login1");
}

/// "0-3,7" behind a name's beginning, leading zeros kept.
void add_numbers(const std::string& prefix, const std::string& suffix, const std::string& ranges,
                 const SourcePosition& where, std::vector<std::string>& names) {
  for (const std::string& range : split(ranges, ',')) {
    const std::size_t dash = range.find('-');
    const std::string first = range.substr(0, dash), last = dash == std::string::npos ? first : range.substr(dash + 1);
    const auto low = number_behind("n" + first, "n"), high = number_behind("n" + last, "n");
    if (!low || !high || *high < *low || static_cast<std::size_t>(*high - *low) + names.size() > most_names) {
      fail_list(where, prefix + "[" + ranges + "]" + suffix);
    }
    for (int i = *low; i <= *high; ++i) names.push_back(fmt::format("{}{:0{}}{}", prefix, i, first.size(), suffix));
  }
}

/// Slurm's hostlist expressions, with one pair of brackets in a name.
std::vector<std::string> host_list(const std::string& text, const SourcePosition& where) {
  std::vector<std::string> names;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t comma = text.find(',', at), open = text.find('[', at);
    if (open == std::string::npos || comma < open) {
      if (names.size() > most_names) fail_list(where, text);
      names.push_back(text.substr(at, comma == std::string::npos ? comma : comma - at));
      at = comma == std::string::npos ? text.size() : comma + 1;
      continue;
    }
    const std::size_t close = text.find(']', open);
    if (close == std::string::npos) fail_list(where, text);
    const std::size_t end = std::min(text.find(',', close), text.size());
    add_numbers(text.substr(at, open - at), text.substr(close + 1, end - close - 1),
                text.substr(open + 1, close - open - 1), where, names);
    at = end + 1;
  }
  return names;
}

/// One a line: SwitchName=s0 Level=0 LinkSpeed=1 Nodes=tux[0-3]
std::vector<Switch> read_switches(const ImportInput& input) {
  std::vector<Switch> all;
  std::set<std::string> names;
  std::size_t parts = 0;
  int number = 0;
  for (const std::string& line : split(input.text, '\n')) {
    ++number;
    const std::string_view said = trim(std::string_view(line).substr(0, line.find('#')));
    if (said.empty()) continue;
    Switch one{"", {}, {}, {input.file, number, 1}};
    for (const std::string& word : split_words(said)) {
      const std::size_t equals = word.find('=');
      const std::string key = to_lower(word.substr(0, equals));
      const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
      if (key == "blockname" || key == "blocksizes") {
        throw ScenarioError(one.where, "BlockName", "blocks of machines say nothing about switches",
                            "topology/tree: SwitchName=s0 Nodes=tux[0-3]");
      }
      if (key == "switchname") one.name = value;
      if (key == "nodes") one.nodes = host_list(value, one.where);
      if (key == "switches") one.switches = host_list(value, one.where);
    }
    parts += one.nodes.size() + one.switches.size();
    if (parts > most_names) throw ScenarioError(one.where, "", "more than 20,000 hosts and switches", "fewer");
    if (one.name.empty()) throw ScenarioError(one.where, "", "no SwitchName", "SwitchName=s0 Nodes=tux[0-3]");
    if (!names.insert(one.name).second)
      throw ScenarioError(one.where, one.name, "a second switch of this name", "its own");
    all.push_back(std::move(one));
  }
  if (all.empty()) throw ScenarioError({input.file, 0, 0}, "", "no switches", "SwitchName=s0 Nodes=tux[0-3]");
  return all;
}

class Tree {
 public:
  explicit Tree(const std::vector<Switch>& all) {
    for (const Switch& one : all) by_name_.emplace(one.name, &one);
    for (const Switch& one : all) {
      for (const std::string& below : one.switches) {
        if (!by_name_.contains(below)) {
          throw ScenarioError(one.where, one.name, fmt::format("there is no switch {}", below),
                              "one with a line of its own");
        }
      }
      height_of(one, 0);
    }
  }

  [[nodiscard]] int height(const Switch& one) const { return heights_.at(&one); }

  /// Machines below a switch.
  [[nodiscard]] std::set<std::string> nodes_below(const Switch& one) const {
    if (one.switches.empty()) return {one.nodes.begin(), one.nodes.end()};
    std::set<std::string> nodes;
    for (const std::string& below : one.switches) nodes.merge(nodes_below(*by_name_.at(below)));
    return nodes;
  }

 private:
  /// 0 for leaves, which have machines.
  int height_of(const Switch& one, int depth) {
    constexpr int deepest = 8;
    if (depth > deepest) throw ScenarioError(one.where, one.name, "switches in a circle", "a tree of few levels");
    if (const auto known = heights_.find(&one); known != heights_.end()) return known->second;
    int height = 0;
    for (const std::string& below : one.switches)
      height = std::max(height, height_of(*by_name_.at(below), depth + 1) + 1);
    return heights_[&one] = height;
  }

  std::map<std::string, const Switch*> by_name_;
  std::map<const Switch*, int> heights_;
};

/// Machines below each switch of one height that has not the same ones as another, most first.
std::vector<std::size_t> sizes_at(const std::vector<Switch>& all, const Tree& tree, int height) {
  std::set<std::set<std::string>> groups;
  for (const Switch& one : all) {
    if (tree.height(one) == height) groups.insert(tree.nodes_below(one));
  }
  std::vector<std::size_t> sizes;
  for (const auto& group : groups) sizes.push_back(group.size());
  std::ranges::sort(sizes, std::greater());
  return sizes;
}

void set_size(Draft& draft, const std::string& key, const std::vector<std::size_t>& sizes,
              const SourcePosition& where) {
  const bool equal = sizes.front() == sizes.back();
  draft.set(key, std::to_string(sizes.front()), where,
            equal ? fmt::format("each of {}", sizes.size())
                  : fmt::format("the largest of {}; the smallest has {}", sizes.size(), sizes.back()));
}

}  // namespace

std::string import_slurm(const ImportInput& input) {
  require_config_text(input);
  const std::vector<Switch> all = read_switches(input);
  const Tree tree(all);
  const std::vector<std::size_t> leaves = sizes_at(all, tree, 0), pods = sizes_at(all, tree, 1);
  if (leaves.back() == 0)
    throw ScenarioError(all.front().where, "", "a leaf switch without machines", "Nodes=tux[0-3]");
  Draft draft(input);
  const SourcePosition& where = all.front().where;
  draft.set("kind", leaves.size() == 1 ? "single_switch" : "fat_tree", draft.nowhere(), "");
  draft.set("name", file_stem(input), draft.nowhere(), "");
  if (leaves.size() > 1) {
    set_size(draft, "nodes_per_leaf", leaves, where);
    if (pods.size() > 1) set_size(draft, "nodes_per_pod", pods, where);
    draft.assume("oversubscription", "1", "Slurm knows no cables");
    draft.assume("rails", "false", "Slurm knows machines, not their cards");
    if (pods.empty()) draft.note("No switch joins the leaves: a level above them is assumed.");
  }
  draft.assume("switch_latency", "0.3 us", "as fat-tree of the catalogue");
  draft.set("sources.default",
            yaml_entries({{"kind", std::string("assumption")}, {"text", "switches as " + input.file + " lists them"}}),
            draft.nowhere(), "");
  draft.note("Use it as cluster.network.fabric of a scenario.");
  draft.apply_overrides();
  const Field document(draft.document(), "");
  FigureLog log("fabric", document);
  read_fabric(document, BytesPerSecond(1e9), log);
  return draft.text("slurm");
}

}  // namespace foretrain
