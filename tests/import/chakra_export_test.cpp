// A step as execution traces, decoded by the numbers of fields that et_def.proto has.
#include "reports/export/chakra_export.hpp"

#include <nlohmann/json.hpp>

#include "model/scenario/load/load.hpp"
#include "reports/import/chakra_trace.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

using Type = ChakraNode::Type;

Scenario two_stages() {
  return load_scenario_text(R"(name: two stages
cluster: { node: dgx-h100, nodes: 1 }
workload:
  train: { model: { family: gpt, layers: 4, hidden: 1024, heads: 16, vocabulary: 51200, sequence: 1024 },
           global_batch: 4, micro_batch: 1, precision: bf16 }
plan: { framework: megatron, data: 2, tensor: 2, pipeline: 2, sequence_parallel: true }
)",
                            "two.yaml");
}

}  // namespace

TEST_CASE("each class of ranks has a trace, whose nodes wait for earlier ones of it") {
  const ChakraExport all = chakra_traces(two_stages());
  REQUIRE(all.traces.size() == 2);  // a stage each
  CHECK(all.traces[0].ranks == std::vector{0, 1, 2, 3});
  CHECK(all.traces[1].ranks == std::vector{4, 5, 6, 7});
  std::map<std::string, std::pair<int, int>> messages;  // by tag: sent, received
  for (const ChakraTrace& trace : all.traces) {
    std::set<std::uint64_t> earlier;
    for (const ChakraNode& node : read_chakra(trace.bytes, "trace")) {
      for (const std::uint64_t other : node.data) CHECK(earlier.contains(other));
      earlier.insert(node.id);
      if (node.type != Type::comm_send && node.type != Type::comm_recv) continue;
      // 1024 tokens of 1024 numbers in two bytes, of which each tensor rank sends its half.
      CHECK(node.number("comm_size") == 1024 * 1024 * 2 / 2);
      const bool sends = node.type == Type::comm_send;
      CHECK(node.number(sends ? "comm_src" : "comm_dst") == static_cast<std::uint64_t>(trace.rank));
      auto& [sent, received] = messages[node.attributes.at("comm_tag")];
      ++(sends ? sent : received);
    }
  }
  // Two micro-batches there and back.
  CHECK(messages.size() == 4);
  for (const auto& [tag, count] : messages) CHECK(count == std::pair(1, 1));
}

TEST_CASE("collectives of a trace have the bytes and the groups of the plan") {
  const ChakraExport all = chakra_traces(two_stages());
  const auto groups = nlohmann::json::parse(all.groups);
  std::uint64_t gradients = 0;
  int gathers = 0, scatters = 0;
  for (const ChakraNode& node : read_chakra(all.traces[0].bytes, "trace")) {
    if (node.type != Type::comm_coll) continue;
    const std::uint64_t kind = node.number("comm_type");
    if (node.name == "gradient all-reduce") gradients += node.number("comm_size");
    // A micro-batch's hidden states, 1024 tokens of 1024 numbers in two bytes, which tensor ranks divide between them.
    if (kind == 2 || kind == 7) CHECK(node.number("comm_size") == 1024 * 1024 * 2);
    if (kind == 2) ++gathers;
    if (kind == 7) ++scatters;
  }
  // Of the first stage: two layers of 12 h² + 13 h, and embeddings of 51,200 words and 1,024 places; a tensor rank has
  // half of the matrices and of the words. Megatron sums gradients in fp32.
  const double h = 1024.0;
  const double halves = 2 * 12 * h * h + 51200 * h;
  CHECK(static_cast<double>(gradients) == Approx(4.0 * halves / 2.0).epsilon(0.03));
  CHECK(gathers > 0);
  CHECK(scatters > 0);
  CHECK(groups["gradients, stage 0"] == nlohmann::json::parse("[[0, 2], [1, 3]]"));
  CHECK(groups["tensor, stage 1"] == nlohmann::json::parse("[[4, 5], [6, 7]]"));
}

TEST_CASE("what has no collectives of its own is refused") {
  CHECK_THROWS_WITH(chakra_traces(load_scenario("sync-ring-4")), Catch::Contains("workload: no training"));
  CHECK_THROWS_WITH(chakra_traces(load_scenario("servers-one-server")), Catch::Contains("plan.sync.algorithm"));
}
