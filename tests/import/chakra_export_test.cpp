// A step as execution traces, decoded by the published schema.
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

/// All traces by rank, and the groups.
struct Traces {
  std::map<int, ChakraTrace> of_rank;
  nlohmann::json groups;
};

Traces traces_of(const Scenario& scenario, ChakraRanks which) {
  Traces all;
  const auto add = [&](const ChakraTrace& trace) { all.of_rank[trace.rank] = trace; };
  all.groups = nlohmann::json::parse(write_chakra_traces(scenario, which, add));
  return all;
}

/// MLCommons Chakra's schema/protobuf/et_def.proto, as far as ASTRA-sim's feeder reads it: number and wire type of each
/// field (protobuf.dev, "Encoding").
using Schema = std::map<std::uint64_t, std::uint64_t>;
const Schema metadata_schema = {{1, 2}};                                       // version
const Schema node_schema = {{1, 0}, {2, 2}, {3, 0}, {5, 2}, {7, 0}, {10, 2}};  // id … data_deps, duration, attr
const Schema attribute_schema = {{1, 2}, {7, 0}, {9, 0}, {27, 0}, {29, 2}};    // name, int32, int64, bool, string
/// The field of `value` that the feeder converts to what it needs.
const std::map<std::string, std::uint64_t> attribute_fields = {{"is_cpu_op", 27}, {"comm_type", 9}, {"comm_size", 9},
                                                               {"comm_src", 7},   {"comm_dst", 7},  {"comm_tag", 7},
                                                               {"pg_name", 29},   {"pg_desc", 29}};

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    REQUIRE(!bytes.empty());
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 127U) << shift;
    if (byte < 128) return value;
  }
}

std::string_view take_piece(std::string_view& bytes) {
  const std::uint64_t length = take_varint(bytes);
  REQUIRE(length <= bytes.size());
  const std::string_view piece = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return piece;
}

/// Fields of a message in their order, a number as its digits; each as the schema has it.
std::vector<std::pair<std::uint64_t, std::string>> fields_of(std::string_view bytes, const Schema& schema) {
  std::vector<std::pair<std::uint64_t, std::string>> fields;
  while (!bytes.empty()) {
    const std::uint64_t tag = take_varint(bytes);
    REQUIRE(schema.at(tag >> 3U) == (tag & 7U));
    const bool is_piece = (tag & 7U) == 2;
    fields.emplace_back(tag >> 3U, is_piece ? std::string(take_piece(bytes)) : std::to_string(take_varint(bytes)));
  }
  return fields;
}

struct FeederNode {
  Type type = Type::invalid;
  std::set<std::uint64_t> waits_for;
  std::map<std::string, std::string> attributes;
};

/// Nodes of a file by id.
std::map<std::uint64_t, FeederNode> feeder_nodes(std::string_view file) {
  CHECK(fields_of(take_piece(file), metadata_schema).front().second == "0.0.4");
  std::map<std::uint64_t, FeederNode> nodes;
  while (!file.empty()) {
    FeederNode node;
    std::uint64_t id = 0;
    for (const auto& [number, value] : fields_of(take_piece(file), node_schema)) {
      if (number == 1) id = std::stoull(value);
      if (number == 3) node.type = static_cast<Type>(std::stoi(value));
      std::string_view packed = value;
      while (number == 5 && !packed.empty()) node.waits_for.insert(take_varint(packed));
      if (number != 10) continue;
      const auto attribute = fields_of(value, attribute_schema);
      REQUIRE(attribute.size() == 2);
      CHECK(attribute[1].first == attribute_fields.at(attribute[0].second));
      node.attributes[attribute[0].second] = attribute[1].second;
    }
    CHECK(nodes.emplace(id, node).second);
  }
  return nodes;
}

/// What Workload.cc of ASTRA-sim asks of nodes: numbered groups that hold the rank, messages from it or to it. What
/// each waits for stands before it; as all ranks number their nodes alike, none waits forever.
void check_for_astra_sim(const Traces& traces) {
  std::map<std::pair<std::string, std::uint64_t>, std::size_t> ranks_at;  // of a collective, by group and id
  std::map<std::string, std::set<bool>> ends_of;                          // of a message: whether it is the sender's
  for (const auto& [rank, trace] : traces.of_rank) {
    const auto nodes = feeder_nodes(trace.bytes);
    for (const auto& [id, node] : nodes) {
      for (const std::uint64_t other : node.waits_for) CHECK((other < id && nodes.contains(other)));
      const auto text = [&](const char* name) { return node.attributes.at(name); };
      if (node.type == Type::comp) continue;
      CHECK(text("is_cpu_op") == "0");
      CHECK(std::stoull(text("comm_size")) > 0);
      if (node.type == Type::comm_coll) {
        const nlohmann::json& group = traces.groups.at(text("pg_name"));
        CHECK(std::ranges::count(group, nlohmann::json(rank)) == 1);
        CHECK(std::set<std::string>{"0", "2", "5", "6", "7"}.contains(text("comm_type")));  // those that it has
        ++ranks_at[{text("pg_name"), id}];
        continue;
      }
      const bool sends = node.type == Type::comm_send;
      CHECK(text(sends ? "comm_src" : "comm_dst") == std::to_string(rank));
      CHECK(ends_of[text("comm_src") + " " + text("comm_dst") + " " + text("comm_tag")].insert(sends).second);
    }
  }
  for (const auto& [collective, ranks] : ranks_at) CHECK(ranks == traces.groups.at(collective.first).size());
  for (const auto& [message, ends] : ends_of) CHECK(ends.size() == 2);
}

}  // namespace

TEST_CASE("each class of ranks has a trace, with its messages") {
  const Traces all = traces_of(two_stages(), ChakraRanks::of_classes);
  REQUIRE(all.of_rank.size() == 2);  // a stage each
  CHECK(all.of_rank.at(0).ranks == std::vector{0, 1, 2, 3});
  CHECK(all.of_rank.at(4).ranks == std::vector{4, 5, 6, 7});
  for (const auto& [rank, trace] : all.of_rank) {
    int messages = 0;
    for (const ChakraNode& node : read_chakra(trace.bytes, "trace")) {
      if (node.type != Type::comm_send && node.type != Type::comm_recv) continue;
      ++messages;
      // 1024 tokens of 1024 numbers in two bytes, of which each tensor rank sends its half.
      CHECK(node.number("comm_size") == 1024 * 1024 * 2 / 2);
    }
    CHECK(messages == 4);  // two micro-batches there and back
  }
}

TEST_CASE("collectives of a trace have the bytes and the groups of the plan") {
  const Traces all = traces_of(two_stages(), ChakraRanks::of_classes);
  std::uint64_t gradients = 0;
  int gathers = 0, scatters = 0;
  for (const ChakraNode& node : read_chakra(all.of_rank.at(0).bytes, "trace")) {
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
  const auto has_group = [&](const char* ranks) {
    return std::ranges::count(all.groups, nlohmann::json::parse(ranks)) == 1;
  };
  CHECK(has_group("[0, 2]"));  // gradients of the first stage, of one half of each matrix
  CHECK(has_group("[6, 7]"));  // tensor ranks of the second
  CHECK_FALSE(all.groups.contains("0"));
}

TEST_CASE("ASTRA-sim's feeder reads a trace of each rank, whose ends meet") {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
  const Traces two = traces_of(two_stages(), ChakraRanks::all);
  CHECK(two.of_rank.size() == 8);
  check_for_astra_sim(two);
  const char* mirrored = R"(name: experts, mirrored stages
cluster: { node: dgx-h100, nodes: 2 }
workload:
  train: { model: { family: gpt, layers: 8, hidden: 512, heads: 8, vocabulary: 8192, sequence: 256, experts: 4 },
           global_batch: 32, micro_batch: 1, precision: bf16 }
plan: { framework: megatron, data: 4, pipeline: 4, expert: 4, schedule: dualpipe, zero: 1 }
)";
  const char* slow = R"(name: a slow GPU, FSDP
cluster: { node: dgx-h100, nodes: 1, faults: [{ node: 0, gpu: 3, speed: 50 % }] }
workload: { train: { model: gpt2, global_batch: 16, micro_batch: 1, precision: bf16 } }
plan: { framework: fsdp, data: 8, zero: 3 }
)";
  for (const char* text : {mirrored, slow}) {
    INFO(text);
    check_for_astra_sim(traces_of(load_scenario_text(text, "more.yaml"), ChakraRanks::all));
  }
}

TEST_CASE("what has no collectives of its own is refused") {
  CHECK_THROWS_WITH(traces_of(load_scenario("sync-ring-4"), ChakraRanks::all),
                    Catch::Contains("workload: no training"));
  CHECK_THROWS_WITH(traces_of(load_scenario("servers-one-server"), ChakraRanks::all),
                    Catch::Contains("plan.sync.algorithm"));
}
