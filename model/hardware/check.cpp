#include "model/hardware/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/number.hpp"
#include "model/hardware/wiring_graph.hpp"

namespace foretrain {
namespace {

class Checker {
 public:
  explicit Checker(const Node& node) : node_(node) {}

  std::vector<HardwareProblem> check() {
    check_vertices();
    check_link_types();
    check_links();
    if (problems_.empty()) check_connection();  // a path needs vertices and links that exist
    check_figures();
    check_network();
    return std::move(problems_);
  }

 private:
  void report(std::string key, std::string text) { problems_.push_back({std::move(key), std::move(text), ""}); }

  void require_positive(const char* key, double value) {
    if (!(value > 0.0) || !std::isfinite(value)) report(key, fmt::format("{} is not a positive number", value));
  }

  [[nodiscard]] bool is_vertex(int index) const {
    return index >= 0 && index < static_cast<int>(node_.vertices.size());
  }
  [[nodiscard]] const std::string& vertex_name(int index) const { return node_.vertices[at_index(index)].name; }

  void check_vertices() {
    if (node_.gpus < 1) report("gpus", "a node needs at least one GPU");
    const auto count = [this](VertexKind kind) {
      return static_cast<int>(std::count_if(node_.vertices.begin(), node_.vertices.end(),
                                            [kind](const NodeVertex& vertex) { return vertex.kind == kind; }));
    };
    for (int i = 0; i < node_.gpus; ++i) {
      if (!is_vertex(i) || node_.vertices[at_index(i)].kind != VertexKind::gpu) {
        report("wiring", fmt::format("vertex {} must be a GPU: the {} GPUs come first", i, node_.gpus));
        break;
      }
    }
    if (count(VertexKind::gpu) > node_.gpus) {
      report("wiring", fmt::format("{} GPUs are wired, but the node has {}", count(VertexKind::gpu), node_.gpus));
    }
    if (count(VertexKind::cpu) < 1) report("wiring", "a node needs at least one CPU");
    if (count(VertexKind::cpu) != node_.cpu.sockets) {
      report("cpu.sockets",
             fmt::format("{} sockets, but {} CPUs are wired", node_.cpu.sockets, count(VertexKind::cpu)));
    }
  }

  void check_link_type(const std::string& key, const LinkType& type) {
    if (!(type.bandwidth.value() > 0.0) || !is_finite(type.bandwidth)) {
      report(key + ".bandwidth", fmt::format("link type {} carries {} B/s", type.name, type.bandwidth.value()));
    }
    if (!(type.latency.value() >= 0.0) || !is_finite(type.latency)) {
      report(key + ".latency", fmt::format("link type {} takes {} s", type.name, type.latency.value()));
    }
    if (!(type.collective_efficiency >= 0.0 && type.collective_efficiency <= 1.0)) {
      report(key + ".collective_efficiency",
             fmt::format("link type {} is used by a factor of {}; at most 1", type.name, type.collective_efficiency));
    }
  }

  void check_link_types() {
    for (const LinkType& type : node_.link_types) check_link_type("link_types." + type.name, type);
  }

  void check_links() {
    for (const NodeLink& link : node_.links) {
      if (!is_vertex(link.a) || !is_vertex(link.b)) {
        report("wiring",
               fmt::format("a link joins vertices {} and {}, but there are {}", link.a, link.b, node_.vertices.size()));
        continue;
      }
      const std::string ends = fmt::format("{} and {}", vertex_name(link.a), vertex_name(link.b));
      if (link.a == link.b) report("wiring", fmt::format("{} is linked to itself", vertex_name(link.a)));
      if (link.count < 1) report("wiring", fmt::format("{} links between {}", link.count, ends));
      if (link.type < 0 || link.type >= static_cast<int>(node_.link_types.size())) {
        report("wiring", fmt::format("the link between {} has no type", ends));
      }
    }
  }

  void check_connection() {
    WiringGraph graph(node_);
    for (const NodeLink& link : node_.links) {
      graph.add_wire(link.a, link.b, {0, BytesPerSecond(1), Seconds(0), false});
      graph.add_wire(link.b, link.a, {0, BytesPerSecond(1), Seconds(0), false});
    }
    const auto socket = std::ranges::find(node_.vertices, VertexKind::cpu, &NodeVertex::kind);
    // An NVSwitch leads from GPU to GPU, and not on to processors.
    for (const int from : {0, static_cast<int>(socket - node_.vertices.begin())}) {
      const auto paths = graph.paths_from(from, WiringGraph::Through::anything);
      std::string lost;
      for (std::size_t i = 0; i < paths.size(); ++i) {
        const VertexKind kind = node_.vertices[i].kind;
        const bool any = from == 0 || kind == VertexKind::gpu || kind == VertexKind::cpu;
        if (any && !paths[i]) lost += (lost.empty() ? "" : ", ") + node_.vertices[i].name;
      }
      if (lost.empty()) continue;
      report("wiring", fmt::format("no link leads from {} to {}", vertex_name(from), lost));
      return;
    }
  }

  void check_figures() {
    require_positive("gpu.memory", node_.gpu.memory.value());
    require_positive("gpu.memory_bandwidth", node_.gpu.memory_bandwidth.value());
    require_positive("gpu.vector_rate.fp32", node_.gpu.matrix_rate(Precision::fp32).value());
    require_positive("gpu.sms", node_.gpu.sms);
    require_positive("cpu.cores", node_.cpu.cores);
    require_positive("cpu.memory", node_.cpu.memory.value());
    require_positive("cpu.memory_bandwidth", node_.cpu.memory_bandwidth.value());
    require_positive("cpu.fp32_rate", node_.cpu.fp32_rate.value());
  }

  void check_network() {
    const Network& network = node_.network;
    for (const int place : node_.nic_attachment) {
      if (!is_vertex(place)) {
        report("nics.attached_to", fmt::format("vertex {} does not exist", place));
      } else if (!lets_traffic_through(node_.vertices[at_index(place)].kind)) {
        report("nics.attached_to",
               fmt::format("a card hangs on {}, which carries nothing for others", vertex_name(place)));
      }
    }
    if (!node_.nic_attachment.empty()) check_link_type("nics.link", node_.nic_attachment_link);
    if (network.nics_per_node < 0) report("network.nics_per_node", fmt::format("{} cards", network.nics_per_node));
    if (network.nics_per_node <= 0) return;
    require_positive("network.nic_bandwidth", network.nic_bandwidth.value());
    if (!(network.efficiency > 0.0 && network.efficiency <= 1.0)) {
      report("network.efficiency", fmt::format("{} is no share between 0 and 1", network.efficiency));
    }
    if (!(network.oversubscription >= 1.0)) {
      report("network.oversubscription", fmt::format("{} is below 1", network.oversubscription));
    }
    if (!(network.latency.value() >= 0.0) || !is_finite(network.latency)) {
      report("network.latency", fmt::format("{} s", network.latency.value()));
    }
  }

  const Node& node_;
  std::vector<HardwareProblem> problems_;
};

}  // namespace

std::vector<HardwareProblem> check_node(const Node& node) { return Checker(node).check(); }

}  // namespace foretrain
