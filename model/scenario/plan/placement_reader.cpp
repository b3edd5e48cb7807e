#include "model/scenario/plan/plan_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <variant>

#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/base/words.hpp"

namespace foretrain {

namespace {

/// In the order of ParallelDimension.
constexpr int Plan::*sizes[] = {&Plan::tensor, &Plan::context, &Plan::expert, &Plan::data, &Plan::pipeline};

/// Nodes that the fabric keeps closest together; 0 where it knows no such neighbourhoods.
int neighbourhood(const Cluster& cluster) {
  const auto& shape = cluster.network.fabric.shape;
  if (const auto* tree = std::get_if<FatTree>(&shape)) return tree->nodes_per_leaf;
  if (const auto* dragonfly = std::get_if<Dragonfly>(&shape)) return dragonfly->nodes_per_router;
  if (const auto* sites = std::get_if<Sites>(&shape)) return (cluster.nodes + sites->sites - 1) / sites->sites;
  return 0;
}

std::vector<int> scattered_nodes(const Field& field, const Cluster& cluster) {
  const int together = neighbourhood(cluster);
  field.fail_if(together == 0, "a fabric without leaves to scatter over",
                "cluster.network.fabric: { kind: fat_tree, … }, or a list of nodes");
  std::vector<int> nodes;
  for (int place = 0; place < together; ++place) {
    for (int node = place; node < cluster.nodes; node += together) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace

void read_order(const Field& field, Plan& plan) {
  std::vector<ParallelDimension> order;
  for (const std::string& word : split(field.text(), '-')) {
    const auto dimension = value_of<ParallelDimension>(word);
    if (!dimension) {
      field.fail(fmt::format("unknown dimension \"{}\"", word),
                 or_list({names_of<ParallelDimension>.begin(), names_of<ParallelDimension>.end()}) + ", joined by -");
    }
    if (std::ranges::find(order, *dimension) != order.end()) field.fail(word + " twice", "every dimension once");
    order.push_back(*dimension);
  }
  for (const ParallelDimension dimension : plan.order) {
    if (std::ranges::find(order, dimension) != order.end()) continue;
    if (const int size = plan.*sizes[static_cast<std::size_t>(dimension)]; size > 1) {
      field.fail(fmt::format("without {}, which has {} ranks", name(dimension), size),
                 fmt::format("for example {}-{}", field.text(), name(dimension)));
    }
    order.push_back(dimension);
  }
  std::ranges::copy(order, plan.order.begin());
}

NodeList::NodeList(const Cluster& cluster, const std::vector<int>& taken)
    : taken_by_(at_index(cluster.nodes), By::nobody) {
  for (const int node : taken) taken_by_[at_index(node)] = By::others;
}

void NodeList::add(const Field& field) {
  const std::string& text = field.text();
  const int count = static_cast<int>(taken_by_.size());
  const std::size_t dots = text.find("..");
  const auto node = [&](std::string_view part) {
    const auto number = number_behind(trim(part), "");
    if (!number) field.fail(fmt::format("\"{}\" is no node", text), "a number, or a range such as 0..7");
    if (*number >= count) field.fail(fmt::format("node {} does not exist", *number), fmt::format("0 to {}", count - 1));
    return *number;
  };
  const int first = node(std::string_view(text).substr(0, dots));
  const int last = dots == std::string::npos ? first : node(std::string_view(text).substr(dots + 2));
  if (last < first) field.fail("the range ends before it begins", fmt::format("{}..{}", last, first));
  for (int next = first; next <= last; ++next) {
    By& by = taken_by_[at_index(next)];
    if (by == By::own) field.fail(fmt::format("node {} twice", next), "each node once");
    if (by == By::others) field.fail(fmt::format("node {} is another job's", next), "nodes that no entry of jobs has");
    by = By::own;
    nodes_.push_back(next);
  }
}

std::vector<int> read_placement(const std::optional<Field>& field, const Cluster& cluster, double gpus,
                                const std::vector<int>& taken) {
  std::vector<int> nodes;
  const std::string word = !field ? "packed" : field->is_scalar() ? field->text() : "";
  if (word == "scattered") {
    nodes = scattered_nodes(*field, cluster);
  } else if (word == "packed") {
    nodes.resize(at_index(cluster.nodes));
    std::iota(nodes.begin(), nodes.end(), 0);
  } else {
    NodeList list(cluster, taken);
    for (const Field& entry : field->list_or_one()) list.add(entry);
    if (list.nodes().empty()) field->fail("no nodes", "nodes in the order of ranks, for example [0..7, 12..15]");
    return list.nodes();
  }
  std::erase_if(nodes, [&](int node) { return std::ranges::binary_search(taken, node); });
  double left = gpus;
  const auto end =
      std::ranges::find_if(nodes, [&](int node) { return (left -= number(cluster.gpus_on(node))) <= 0.0; });
  if (end != nodes.end()) nodes.erase(end + 1, nodes.end());
  return nodes;
}

}  // namespace foretrain
