#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot.hpp"

namespace foretrain {

namespace {

/// The file of a machine: a name of the catalogue, or a file that says `kind: node`. Nothing: it is a scenario's.
bool is_node(const std::string& name) {
  const YamlNode written = yaml_scalar(name, {"", 0, 0});
  try {
    const YamlNode* kind = cached_yaml_file(catalogue_file(Catalogue::node, Field(written, "")).string()).at("kind");
    return kind != nullptr && kind->scalar == "node";
  } catch (const ScenarioError&) {
    return false;
  }
}

TopologyPicture picture_of_node(const std::string& name) {
  const Node node = read_node(Field(yaml_scalar(name, {"", 0, 0}), ""));
  return {node.name, node, node.network};
}

TopologyPicture picture_of_cluster(const PlotOptions& options) {
  const Scenario scenario = load_scenario(options.file(), options.overrides);
  const Cluster& cluster = scenario.cluster;
  if (!cluster.groups.empty()) {
    throw UsageError(options.file() + ": nodes of several kinds; draw each: `foretrain plot topology NODE`");
  }
  TopologyPicture picture{fmt::format("{} x {}", cluster.nodes, cluster.node.name), cluster.node, cluster.network};
  if (cluster.nodes > 1) picture.cluster = cluster;
  return picture;
}

}  // namespace

ExitStatus plot_topology(const PlotOptions& options) {
  TopologyPicture picture = is_node(options.file()) ? picture_of_node(options.file()) : picture_of_cluster(options);
  picture.width_cm = options.width_cm;
  return show(options, picture);
}

}  // namespace foretrain
