#include "model/scenario/hardware/hardware_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "model/base/text.hpp"

namespace foretrain {

namespace {

/// The number of one of `count` things called `word`0, `word`1, …
int read_number(const Field& field, const std::string& text, std::string_view word, int count) {
  const auto number = number_behind(text, word);
  if (!number) {
    field.fail(fmt::format("unknown place \"{}\"", field.text()),
               "gpu<rank>, node<number>, node<number>/cpu<socket> or host of gpu<rank>");
  }
  if (*number >= count) {
    field.fail(fmt::format("{} does not exist", text),
               count == 1 ? fmt::format("{}0", word) : fmt::format("{0}0 to {0}{1}", word, count - 1));
  }
  return *number;
}

BackgroundFlow::Place read_place(const Field& field, const Cluster& cluster) {
  using enum BackgroundFlow::Place::Kind;
  constexpr std::string_view host_of = "host of ";
  const std::string& text = field.text();
  if (text.starts_with(host_of)) {
    return {memory_of_gpu, read_number(field, text.substr(host_of.size()), "gpu", cluster.gpus()), 0};
  }
  if (!text.starts_with("node")) return {gpu, read_number(field, text, "gpu", cluster.gpus()), 0};
  const std::size_t slash = text.find('/');
  const int node = read_number(field, text.substr(0, slash), "node", cluster.nodes);
  if (slash == std::string::npos) return {node_memory, node, 0};
  const auto sockets = std::ranges::count(cluster.node_at(node).vertices, VertexKind::cpu, &NodeVertex::kind);
  return {node_memory, node, read_number(field, text.substr(slash + 1), "cpu", static_cast<int>(sockets))};
}

}  // namespace

std::vector<BackgroundFlow> read_background(const Field& field, const Cluster& cluster) {
  std::vector<BackgroundFlow> flows;
  for (const Field& entry : field.list()) {
    const MappingReader keys = entry.mapping(keys::background);
    BackgroundFlow flow;
    flow.from = read_place(keys["from"], cluster);
    flow.to = read_place(keys["to"], cluster);
    flow.rate = keys.quantity_or("rate", flow.rate);
    flow.where = keys["to"].where();
    if (keys["from"].text() == keys["to"].text()) {
      keys.fail("to", fmt::format("from {0} to {0}", keys["to"].text()), "another place than from");
    }
    flows.push_back(flow);
  }
  return flows;
}

}  // namespace foretrain
