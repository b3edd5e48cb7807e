#include "reports/print/wiring_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "model/base/format.hpp"
#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

/// The name before its number.
std::string stem(const std::string& name) { return name.substr(0, name.find_first_of("0123456789")); }

/// "gpu0, gpu1", "gpu0 … gpu7", "gpu0, gpu1, gpu4".
std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t first = 0; first < names.size();) {
    std::size_t last = first;
    const std::string prefix = stem(names[first]);
    const auto number = [&](std::size_t i) { return number_behind(names[i], prefix); };
    while (last + 1 < names.size() && number(last) && number(last + 1) == *number(last) + 1) ++last;
    text += (text.empty() ? "" : ", ") + names[first];
    if (last > first) text += (last == first + 1 ? ", " : " … ") + names[last];
    first = last + 1;
  }
  return text;
}

struct Line {
  std::string left, right;
};

/// Builds the lines of a tree.
class TreeText {
 public:
  explicit TreeText(const WiringTree& tree) : tree_(tree) {}

  std::vector<Line> lines() {
    constexpr std::size_t few = 4;
    const std::vector<int>& roots = tree_.roots;
    for (std::size_t i = 0; i < roots.size(); ++i) {
      std::size_t last = i;
      while (last + 1 < roots.size() && tree_.alike(roots[i], roots[last + 1])) ++last;
      add(roots[i], "", "");
      if (last - i < few) continue;
      add_repeats(
          {roots.begin() + static_cast<std::ptrdiff_t>(i) + 1, roots.begin() + static_cast<std::ptrdiff_t>(last) + 1});
      i = last;
    }
    add_others();
    return std::move(lines_);
  }

 private:
  [[nodiscard]] const WiringTree::Part& part(int number) const { return tree_.parts[at_index(number)]; }

  /// `first` stands before its own line, `further` before those of its children.
  void add(int number, const std::string& first, const std::string& further) {
    lines_.push_back({first + part(number).name, describe(part(number).above)});
    const std::vector<std::vector<int>> groups = groups_of(part(number).children);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const bool last = i + 1 == groups.size();
      const std::string branch = further + (last ? "└─ " : "├─ ");
      if (groups[i].size() == 1) {
        add(groups[i].front(), branch, further + (last ? "   " : "│  "));
      } else {
        lines_.push_back({branch + names(groups[i]), describe(part(groups[i].front()).above)});
      }
    }
  }

  /// Neighbours of one kind on which nothing hangs, linked alike.
  [[nodiscard]] std::vector<std::vector<int>> groups_of(const std::vector<int>& children) const {
    std::vector<std::vector<int>> groups;
    for (const int child : children) {
      const bool joins = !groups.empty() && part(child).children.empty() && tree_.alike(groups.back().front(), child);
      if (!joins) groups.emplace_back();
      groups.back().push_back(child);
    }
    return groups;
  }

  [[nodiscard]] std::string names(const std::vector<int>& numbers) const {
    std::vector<std::string> all;
    for (const int number : numbers) all.push_back(part(number).name);
    return join_names(all);
  }

  void add_repeats(const std::vector<int>& roots) {
    std::vector<int> below;
    for (const int root : roots) {
      const std::vector<int> leaves = tree_.leaves(root);
      std::ranges::copy_if(leaves, std::back_inserter(below), [&](int leaf) { return leaf != root; });
    }
    std::ranges::stable_sort(below, {}, [&](int leaf) { return part(leaf).kind != VertexKind::gpu; });
    std::string reported;
    for (const VertexKind kind : {VertexKind::gpu, VertexKind::nic}) {
      std::vector<int> some;
      std::ranges::copy_if(below, std::back_inserter(some), [&](int leaf) { return part(leaf).kind == kind; });
      if (!some.empty()) reported += (reported.empty() ? "" : "; ") + names(some);
    }
    lines_.push_back({names(roots), reported.empty() ? "the same" : "the same, with " + reported});
  }

  void add_others() {
    std::vector<WiringTree::Link> left = tree_.others;
    while (!left.empty()) {
      const Wires wires = left.front().wires;
      const auto rest = std::stable_partition(left.begin(), left.end(), [&](const WiringTree::Link& link) {
        return link.wires == wires && kinds(link) == kinds(left.front());
      });
      add_links({left.begin(), rest});
      left.erase(left.begin(), rest);
    }
  }
  [[nodiscard]] std::pair<VertexKind, VertexKind> kinds(const WiringTree::Link& link) const {
    return {std::min(part(link.a).kind, part(link.b).kind), std::max(part(link.a).kind, part(link.b).kind)};
  }

  void add_links(const std::vector<WiringTree::Link>& links) {
    std::vector<int> ends;
    for (const WiringTree::Link& link : links) {
      for (const int end : {link.a, link.b}) {
        if (std::ranges::find(ends, end) == ends.end()) ends.push_back(end);
      }
    }
    std::ranges::sort(ends);
    const std::string wires = describe(links.front().wires);
    if (ends.size() > 2 && links.size() == ends.size() * (ends.size() - 1) / 2) {
      lines_.push_back({"each pair of " + names(ends), wires});
      return;
    }
    const auto hub = std::ranges::find_if(ends, [&](int end) {
      return std::ranges::all_of(links, [&](const WiringTree::Link& link) { return link.a == end || link.b == end; });
    });
    if (links.size() > 1 && hub != ends.end()) {
      const int middle = *hub;
      ends.erase(hub);
      lines_.push_back({names(ends) + " – " + part(middle).name, wires});
      return;
    }
    for (const int end : ends) {
      std::vector<int> others;
      for (const WiringTree::Link& link : links) {
        if (std::min(link.a, link.b) == end) others.push_back(std::max(link.a, link.b));
      }
      std::ranges::sort(others);
      if (!others.empty()) lines_.push_back({part(end).name + " – " + names(others), wires});
    }
  }

  const WiringTree& tree_;
  std::vector<Line> lines_;
};

}  // namespace

std::string describe(const Wires& wires) {
  if (!wires.stated()) return "";
  return fmt::format("{}{}, {}", wires.count > 1 ? fmt::format("{} x ", wires.count) : "", wires.type.name,
                     format_bandwidth(wires.bandwidth()));
}

std::string wiring_text(const Node& node, const Network& network, int indent) {
  const WiringTree tree = wiring_tree(node, network);
  const std::vector<Line> lines = TreeText(tree).lines();
  std::size_t widest = 0;
  for (const Line& line : lines) {
    if (!line.right.empty()) widest = std::max(widest, display_width(line.left));
  }
  std::string text;
  for (const Line& line : lines) {
    const std::size_t pad = line.right.empty() ? 0 : widest + 2 - display_width(line.left);
    text += std::string(at_index(indent), ' ') + line.left + std::string(pad, ' ') + line.right + "\n";
  }
  return text;
}

}  // namespace foretrain
