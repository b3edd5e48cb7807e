// Bad input: every row says what is put where, and what the message has to name. `^` marks the guilty place; it is
// taken out before the text is read, and gives the expected line and column.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "model/base/text.hpp"
#include "model/scenario/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

struct Complaint {
  bool thrown = false;
  SourcePosition where;
  std::string key, got, expected, text;
};

Complaint complaint_about(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    load_scenario_text(text, "bad.yaml", overrides);
  } catch (const ScenarioError& error) {
    return {true, error.where(), error.key(), error.got(), error.expected(), error.what()};
  }
  return {};
}

/// Takes the mark out of the text and says where it stood.
SourcePosition take_mark(std::string& text) {
  const std::size_t mark = text.find('^');
  REQUIRE(mark != std::string::npos);
  text.erase(mark, 1);
  SourcePosition where{"bad.yaml", 1, 1};
  for (std::size_t i = 0; i < mark; ++i) {
    where.line += text[i] == '\n' ? 1 : 0;
    where.column = text[i] == '\n' ? 1 : where.column + 1;
  }
  return where;
}

const std::vector<std::string>& good_lines() {
  static const std::vector<std::string> lines = {
      "name: good",
      "cluster:",
      "  node: dgx-a100-80gb",
      "  nodes: 2",
      "  network: { nics_per_node: 8, nic_bandwidth: 200 Gbit/s, latency: 5 us }",
      "workload:",
      "  train:",
      "    model: { family: gpt, layers: 24, hidden: 1024, heads: 16, vocabulary: 51200, sequence: 1024 }",
      "    global_batch: 64",
      "    micro_batch: 2",
      "    precision: bf16",
      "plan:",
      "  data: 4",
      "  tensor: 2",
      "  pipeline: 2",
      "  sync: { algorithm: ring, bucket: 25 MB }"};
  return lines;
}

std::string good_text(std::size_t replaced_line = 0, std::string_view replacement = "") {
  std::string text;
  for (std::size_t i = 0; i < good_lines().size(); ++i) {
    text += i + 1 == replaced_line ? std::string(replacement) : good_lines()[i];
    text += '\n';
  }
  return text;
}

/// The good scenario with one line (counted from 1) replaced.
struct BadLine {
  std::size_t line;
  std::string_view replacement;
  std::string_view key;
  std::string_view wrong;  ///< part of what is wrong
  std::string_view right;  ///< part of what would be right
};

constexpr BadLine bad_lines[] = {
    // keys
    {1, "^nmae: good", "nmae", "unknown key", "did you mean name?"},
    {4, "  ^node_count: 2", "cluster.node_count", "unknown key", "nodes"},
    {14, "  ^tensr: 2", "plan.tensr", "unknown key", "did you mean tensor?"},
    {14, "  ^data: 4", "data", "given twice", "line 13"},
    {14, "  ^tensor:", "plan.tensor", "no value", "leave the key out"},
    {8, "    model: { family: gpt, layers: 24, ^hiden: 1024, heads: 16, vocabulary: 1, sequence: 1 }",
     "workload.train.model.hiden", "unknown key", "did you mean hidden?"},
    {8, "    model: ^{ family: gpt, layers: 24, heads: 16, vocabulary: 51200, sequence: 1024 }",
     "workload.train.model.hidden", "missing", "a value"},
    {6, "^workloads:", "workloads", "unknown key", "did you mean workload?"},
    {16, "  sync: { algorithm: ring, ^buckets: 25 MB }", "plan.sync.buckets", "unknown key", "did you mean bucket?"},
    // quantities
    {5, "  network: { nic_bandwidth: ^25 GB }", "cluster.network.nic_bandwidth", "is a size, not a bandwidth",
     "write GB/s"},
    {5, "  network: { nic_bandwidth: ^200 }", "cluster.network.nic_bandwidth", "has no unit", "200 GB/s"},
    {5, "  network: { nic_bandwidth: ^200 Gbps }", "cluster.network.nic_bandwidth", "unknown unit", "200 Gbit/s"},
    {5, "  network: { nic_bandwidth: ^-5 GB/s }", "cluster.network.nic_bandwidth", "negative", "not negative"},
    {5, "  network: { nic_bandwidth: ^.nan }", "cluster.network.nic_bandwidth", "not a finite number", "finite"},
    {5, "  network: { nic_bandwidth: ^inf GB/s }", "cluster.network.nic_bandwidth", "not a finite number", "finite"},
    {5, "  network: { nic_bandwidth: ^1e999 GB/s }", "cluster.network.nic_bandwidth", "outside the range", "below"},
    {5, "  network: { nic_bandwidth: ^0 GB/s }", "cluster.network.nic_bandwidth", "zero", "above zero"},
    {5, "  network: { latency: ^5 }", "cluster.network.latency", "has no unit", "5 us"},
    {5, "  network: { latency: ^5 GB }", "cluster.network.latency", "a size, not a time", "5 us"},
    {5, "  network: { oversubscription: ^0.5 }", "cluster.network.oversubscription", "below 1", "1 for a full fabric"},
    {5, "  network: { efficiency: ^1.5 }", "cluster.network.efficiency", "above 1", "up to 1"},
    // networks: cards, transports, fabrics, faults
    {5, "  network: { nic: ^ethernet-101g }", "cluster.network.nic", "unknown card", "did you mean ethernet-1"},
    {5, "  network: { nic: ethernet-10g, nic_bandwidth: ^1 GB/s }", "cluster.network.nic_bandwidth",
     "has a bandwidth already", "one of the two"},
    {5, "  network: { nic: ethernet-10g, transport: ^{ protocol: infiniband } }", "cluster.network.transport",
     "on an Ethernet card", "roce"},
    {5, "  network: { transport: { protocol: ^tpc } }", "cluster.network.transport.protocol", "unknown value", "tcp"},
    {5, "  network: { transport: ^{ mtu: 1500 B } }", "cluster.network.transport.protocol", "missing", "a value"},
    {5, "  network: { transport: { protocol: tcp, mtu: ^52 B } }", "cluster.network.transport.mtu",
     "the headers take 52", "1500 B"},
    {5, "  network: { transport: { protocol: roce, mtu: ^1500 B } }", "cluster.network.transport.mtu",
     "no packets of 1500 bytes", "4096 B"},
    {5, "  network: { transport: { protocol: tcp, window: ^0 KiB } }", "cluster.network.transport.window", "zero",
     "above zero"},
    {5, "  network: { transport: { protocol: tcp, loss: ^1 } }", "cluster.network.transport.loss",
     "of all packets lost", "below 1"},
    {5, "  network: { transport: { protocol: tcp, streams: ^0 } }", "cluster.network.transport.streams", "out of range",
     "from 1"},
    {5, "  network: { transport: { protocol: ^udp, window: 64 KiB } }", "cluster.network.transport.protocol",
     "describe TCP connections", "tcp"},
    {5, "  network: { fabric: ^fat-tre }", "cluster.network.fabric", "unknown fabric", "fat-tree"},
    {5, "  network: { fabric: ^{ nodes_per_leaf: 2 } }", "cluster.network.fabric", "no kind", "fat_tree"},
    {5, "  network: { fabric: { kind: ^tree } }", "cluster.network.fabric.kind", "unknown value", "fat_tree"},
    {5, "  network: { fabric: ^{ kind: fat_tree } }", "cluster.network.fabric.nodes_per_leaf", "missing", "a value"},
    {5, "  network: { fabric: { kind: torus, ^rails: true } }", "cluster.network.fabric.rails", "unknown key",
     "dimensions"},
    {5, "  network: { fabric: { kind: fat_tree, nodes_per_leaf: 2, nodes_per_pod: ^3 } }",
     "cluster.network.fabric.nodes_per_pod", "no whole leaves of 2", "a multiple of 2"},
    {5, "  network: { fabric: { kind: fat_tree, nodes_per_leaf: 2, oversubscription: ^0.5 } }",
     "cluster.network.fabric.oversubscription", "below 1", "1 for a full fabric"},
    {5, "  network: { fabric: { kind: torus, dimensions: ^[3, 3] } }", "cluster.network.fabric.dimensions",
     "3 x 3 = 9 nodes, but the cluster has 2", "product is 2"},
    {5, "  network: { fabric: { kind: torus, dimensions: [2], link_bandwidth: ^0 GB/s } }",
     "cluster.network.fabric.link_bandwidth", "zero", "above zero"},
    {5, "  network: { fabric: { kind: dragonfly, nodes_per_router: 1, routers_per_group: 1, groups: ^1 } }",
     "cluster.network.fabric.groups", "room for 1 nodes, not for 2", "more groups"},
    {5,
     "  network: { fabric: { kind: dragonfly, nodes_per_router: 1, routers_per_group: 1, groups: 3, "
     "global_links_per_router: ^1 } }",
     "cluster.network.fabric.global_links_per_router", "do not reach 2 other groups", "at most 2 groups"},
    {5, "  network: { fabric: ^{ kind: sites, bandwidth: 1 GB/s } }", "cluster.network.fabric.distance", "missing",
     "a value"},
    {5, "  network: { fabric: { kind: sites, bandwidth: 1 GB/s, distance: ^-5 km } }",
     "cluster.network.fabric.distance", "negative", "not negative"},
    {5, "  network: { fabric: { kind: sites, bandwidth: 1 GB/s, distance: ^5 ms } }", "cluster.network.fabric.distance",
     "not a length", "km"},
    {5, "  network: { fabric: { kind: sites, bandwidth: 1 GB/s, distance: 5 km, sites: ^3 } }",
     "cluster.network.fabric.sites", "3 sites for 2 nodes", "at most 2"},
    {5, "  faults: ^{ node: 0 }", "cluster.faults", "where a list belongs", "a list"},
    {5, "  faults: [ ^{ node: 0, failed: true } ]", "cluster.faults[0]", "neither a card nor a link", "one of the two"},
    {5, "  faults: [ ^{ node: 0, card: 0 } ]", "cluster.faults[0]", "nothing is wrong", "failed: true"},
    {5, "  faults: [ { card: ^0, failed: true } ]", "cluster.faults[0].card", "of no node", "node: NUMBER"},
    {5, "  faults: [ { node: ^2, card: 0, failed: true } ]", "cluster.faults[0].node", "node 2 does not exist",
     "0 to 1"},
    {5, "  faults: [ { node: 0, card: ^8, failed: true } ]", "cluster.faults[0].card", "card 8 does not exist",
     "0 to 7"},
    {5, "  faults: [ { node: 0, card: 0, bandwidth: ^0 % } ]", "cluster.faults[0].bandwidth", "0 %", "failed: true"},
    {5, "  faults: [ { node: 0, link: ^gpu0-plx7, failed: true } ]", "cluster.faults[0].link", "has no link gpu0-plx7",
     "gpu0>"},
    {5, "  network: { nics_per_node: 1 }\n  faults: [ ^{ node: 1, card: 0, failed: true } ]", "cluster.faults[0]",
     "it is an island", "a card that works"},
    {5, "  faults: [ { node: 1, link: gpu0-plx0, failed: true }, ^{ node: 1, link: gpu0-nvswitch, failed: true } ]",
     "cluster.faults[1]", "not connected", "still reaches"},
    {5,
     "  network: { fabric: { kind: fat_tree, nodes_per_leaf: 1 } }\n"
     "  faults: [ { link: ^leaf0>spine, failed: true } ]",
     "cluster.faults[0].link", "falls into islands", "50 %"},
    {5, "  faults: [ { link: ^leaf0>spine, bandwidth: 50 % } ]", "cluster.faults[0].link", "the fabric has no links",
     "another fabric"},
    {5, "  price: ^3", "cluster.price", "has no unit", "3 USD/GPU/hour"},
    {16, "  sync: { bucket: ^25 }", "plan.sync.bucket", "has no unit", "25 MB"},
    {16, "  sync: { bucket: ^0 MB }", "plan.sync.bucket", "zero", "above zero"},
    {11, "    samples: ^300 billion", "workload.train.samples", "not a length of training", "300 billion tokens"},
    // whole numbers, words
    {4, "  nodes: ^0", "cluster.nodes", "out of range", "from 1"},
    {4, "  nodes: ^-2", "cluster.nodes", "out of range", "from 1"},
    {4, "  nodes: ^two", "cluster.nodes", "not a whole number", "from 1"},
    {4, "  nodes: ^2.5", "cluster.nodes", "not a whole number", "from 1"},
    {4, "  nodes: ^99999999999999999999", "cluster.nodes", "too large", "from 1"},
    {4, "  nodes: ^[2]", "cluster.nodes", "a list where a single value belongs", "one value"},
    {11, "    precision: ^bf61", "workload.train.precision", "unknown value \"bf61\"", "did you mean bf16?"},
    {11, "    optimizer: ^lion", "workload.train.optimizer", "unknown value", "adamw"},
    {11, "    recompute: ^yes", "workload.train.recompute", "unknown value", "selective"},
    {16, "  sequence_parallel: ^1", "plan.sequence_parallel", "neither true nor false", "true or false"},
    {16, "  zero: ^4", "plan.zero", "out of range", "from 0 to 3"},
    {16, "  sync: { algorithm: ^rings }", "plan.sync.algorithm", "unknown value", "did you mean ring?"},
    {16, "  sync: { compression: ^powersgd }", "plan.sync.compression", "unknown value", "powersgd(4)"},
    {16, "  sync: { compression: ^powersgd(0) }", "plan.sync.compression", "not a word with a number", "powersgd(4)"},
    {16, "  sync: { compression: ^powersgd(1.5) }", "plan.sync.compression", "not a word with a number", "powersgd(4)"},
    {16, "  sync: { compression: ^powersgd(99999999999) }", "plan.sync.compression", "not a word", "powersgd(4)"},
    {16, "  sync: { compression: ^powersgd( }", "plan.sync.compression", "not a word with a number", "powersgd(4)"},
    {16, "  sync: { compression: ^bf16(2) }", "plan.sync.compression", "unknown value", "bf16, fp8"},
    {16, "  sync: { compression: ^top_k }", "plan.sync.compression", "how many gradients", "top_k(1 %)"},
    {16, "  sync: { compression: ^top_k(0) }", "plan.sync.compression", "a share of 0", "above 0 and up to 1"},
    {16, "  sync: { compression: ^top_k(150 %) }", "plan.sync.compression", "a share of 1.5", "up to 1"},
    {16, "  sync: { compression: ^top_k(-1 %) }", "plan.sync.compression", "negative", "top_k(0.01)"},
    {16, "  sync: { compression: ^top_k(nan) }", "plan.sync.compression", "not a finite number", "top_k(0.01)"},
    {16, "  sync: { compression: ^top_k() }", "plan.sync.compression", "empty value", "top_k(0.01)"},
    {16, "  sync: { compression: ^top_k(1 MB) }", "plan.sync.compression", "number", "top_k(0.01)"},
    {16, "  sync: { error_feedback: ^true }", "plan.sync.error_feedback", "without compression", "compression: fp16"},
    {16, "  sync: { first_bucket: ^0 MB }", "plan.sync.first_bucket", "zero", "above zero"},
    {16, "  sync: { bucketing: ^by_size }", "plan.sync.bucketing", "unknown value", "by_tensor"},
    {16, "  sync: { every_micro_batch: ^yes please }", "plan.sync.every_micro_batch", "", "true or false"},
    {16, "  sync: { every_micro_batch: ^true }", "plan.sync.every_micro_batch", "a pipeline that stops", "pipeline: 1"},
    {16, "  sync: { algorithm: parameter_server, compression: ^powersgd(2) }", "plan.sync.compression",
     "powersgd with a parameter server", "another algorithm"},
    {16, "  sync: { algorithm: parameter_server, consistency: asynchronous, compression: ^top_k(1 %) }",
     "plan.sync.compression", "top_k with a parameter server", "fp16"},
    {16, "  zero: 1\n  sync: { compression: ^powersgd(2) }", "plan.sync.compression", "powersgd with zero: 1",
     "zero: 0"},
    {16, "  zero: 3\n  sync: { compression: ^top_k(0.1 %) }", "plan.sync.compression", "top_k with zero: 3", "zero: 0"},
    {16, "  sync: { algorithm: parameter_server, consistency: ^bounded(x) }", "plan.sync.consistency",
     "not a word with a number", "bounded(4)"},
    {16, "  sync: { algorithm: parameter_server, consistency: ^bounded(-1) }", "plan.sync.consistency",
     "not a word with a number", "bounded(4)"},
    {16, "  sync: { algorithm: parameter_server, consistency: ^asynchronous(4) }", "plan.sync.consistency",
     "asynchronous has no bound on staleness", "bounded(4)"},
    {16, "  sync: { algorithm: parameter_server, assignment: ^hash }", "plan.sync.assignment", "unknown value",
     "hashed"},
    {16, "  sync: { algorithm: parameter_server, priority: ^first }", "plan.sync.priority", "unknown value",
     "first_layer"},
    {16, "  sync: { algorithm: parameter_server, split: ^0 MB }", "plan.sync.split", "zero", "above zero"},
    {16, "  sync: { algorithm: parameter_server, slow_workers: { count: 1, factor: ^0.5 } }",
     "plan.sync.slow_workers.factor", "0.5 times the compute time", "from 1 to 1000"},
    {16, "  sync: { algorithm: parameter_server, slow_workers: ^{ count: 1 } }", "plan.sync.slow_workers.factor",
     "missing", "a value"},
    {11, "    compute_spread: ^100 %", "workload.train.compute_spread", "a spread of 100 %", "less than 100 %"},
    {11, "    compute_spread: ^5 ms", "workload.train.compute_spread", "not a plain number", "number without unit"},
    {16, "  execution: ^jit", "plan.execution", "unknown value", "cuda_graph"},
    {16, "  sync: ^ring", "plan.sync", "a value where a mapping belongs", "algorithm"},
    // names
    {3, "  node: ^dgx-a100-80g", "cluster.node", "unknown node", "dgx-a100-80gb"},
    {3, "  node: { preset: dgx-a100-80gb, gpu: ^a100-sxm-81gb }", "cluster.node.gpu", "unknown GPU", "a100-sxm-80gb"},
    {3, "  node: ^nodes/none.yaml", "cluster.node", "no file", "relative to this one"},
    {8, "    model: ^resnet-5", "workload.train.model", "unknown model", "resnet-50"},
    {8, "    model: { family: ^gtp, layers: 24 }", "workload.train.model.family", "unknown value", "did you mean gpt?"},
    {8, "    model: ^{ layers: 24 }", "workload.train.model", "no family", "family: gpt"},
    // combinations
    {13, "  data: ^8", "plan.data", "= 32, but the cluster has 16 GPUs", "data: 4"},
    {9, "    global_batch: ^60", "workload.train.global_batch", "not divisible by data 4 x micro_batch 2 = 8",
     "56 or 64"},
    {4, "  gpus_per_node: ^9", "cluster.gpus_per_node", "9 GPUs, but dgx-a100-80gb has 8", "at most 8"},
    {8, "    model: { family: gpt, layers: 24, hidden: 1000, heads: ^16, vocabulary: 51200, sequence: 1024 }",
     "workload.train.model.heads", "1000 is not divisible by 16", "divisor"},
    {8, "    model: { family: llama, layers: 24, hidden: 1024, heads: 16, kv_heads: ^5, vocabulary: 9, sequence: 8 }",
     "workload.train.model.kv_heads", "cannot share 5", "divisor of 16"},
    {8, "    model: { preset: mixtral-8x7b, experts_per_token: ^9 }", "workload.train.model.experts_per_token",
     "9 experts per token", "at most 8"},
    {16, "  sync: { algorithm: ring, servers: ^4 }", "plan.sync.servers", "without a parameter server",
     "algorithm: parameter_server"},
    {16, "  sync: { algorithm: ring, levels: ^[4, 2] }", "plan.sync.levels", "without a hierarchical algorithm",
     "algorithm: hierarchical"},
    {16, "  sync: { algorithm: hierarchical, levels: ^[] }", "plan.sync.levels", "an empty list", "for example [4, 2]"},
    {16, "  sync: { algorithm: hierarchical, levels: [4, ^0] }", "plan.sync.levels[1]", "0", "1"},
    {16, "  sync: { algorithm: hierarchical, levels: ^pairs }", "plan.sync.levels", "pairs", "whole number"},
    {16, "  sync: { algorithm: ^multiring }", "plan.sync.algorithm", "unknown value", "multi_ring"},
    {5, "  network: { nics_per_node: 8, nic_bandwidth: 200 Gbit/s, latency: 5 us, in_network_reduction: ^SHARP }",
     "cluster.network.in_network_reduction", "", "true or false"},
    {16, "  zero: ^1\n  sync: { algorithm: hierarchical_parameter_server }", "plan.zero", "with a parameter server",
     "zero: 0"},
    {16, "  sync: { algorithm: ring, priority: ^first_layer }", "plan.sync.priority", "without a parameter server",
     "algorithm: parameter_server"},
    {16, "  sync: { algorithm: ring, slow_workers: ^{ count: 1, factor: 2 } }", "plan.sync.slow_workers",
     "without a parameter server", "algorithm: parameter_server"},
    {11, "    compute_spread: ^5 %", "workload.train.compute_spread", "unequal workers without a parameter server",
     "parameter_server"},
    {16, "  sync: { algorithm: parameter_server, consistency: ^asynchronous }", "plan.sync.consistency",
     "data parallelism only", "tensor, pipeline, context and expert of 1"},
    {16, "  sync: { algorithm: parameter_server, priority: ^first_layer }", "plan.sync.priority",
     "data parallelism only", "leave the key out"},
    {16, "  sync: { algorithm: parameter_server, placement: dedicated, servers: ^2 }", "plan.sync.servers",
     "2 dedicated servers in a cluster of 2 machines", "at most 1"},
    {16, "  zero: ^1\n  sync: { algorithm: parameter_server }", "plan.zero", "zero 1 with a parameter server",
     "zero: 0"},
    {16, "  sync: { algorithm: parameter_server, placement: gpu, servers: ^17 }", "plan.sync.servers",
     "17 servers on 16 GPUs", "at most 16"},
    {15, "  pipeline: ^2\n  interleave: 13", "plan.pipeline", "24 layers cannot fill 2 stages of 13 chunks",
     "at most 24"},
    {15, "  pipeline: 1\n  context: 2\n  interleave: ^2", "plan.interleave", "without a pipeline", "interleave: 1"},
    {16, "  expert: ^2", "plan.expert", "no experts", "expert: 1"},
};

/// The text, which marks the guilty place, must be refused there, for the key, with these words.
void check_complaint(std::string text, std::string_view key, std::string_view wrong, std::string_view right) {
  const SourcePosition expected = take_mark(text);
  INFO(text);
  const Complaint complaint = complaint_about(text);
  REQUIRE(complaint.thrown);
  INFO(complaint.text);
  CHECK(complaint.where.file == "bad.yaml");
  CHECK(complaint.where.line == expected.line);
  CHECK(complaint.where.column == expected.column);
  CHECK(complaint.key == key);
  CHECK(complaint.got.find(wrong) != std::string::npos);
  CHECK(complaint.expected.find(right) != std::string::npos);
}

}  // namespace

TEST_CASE("The scenario that the bad ones start from is good") {
  CHECK_NOTHROW(load_scenario_text(good_text(), "good.yaml"));
}

TEST_CASE("One bad line: file, line, column, key, what is wrong, what would be right") {
  for (const BadLine& bad : bad_lines) {
    check_complaint(good_text(bad.line, bad.replacement), bad.key, bad.wrong, bad.right);
  }
}

TEST_CASE("The guilty key may stand in another line than the cause") {
  struct Row {
    std::vector<std::pair<std::size_t, std::string>> replaced;
    std::string_view key, wrong, right;
  };
  const std::vector<Row> rows = {
      {{{13, "  data: 16"},
        {14, "  tensor: 1"},
        {15, "  pipeline: 1"},
        {16, "  sync: { algorithm: parameter_server, slow_workers: { count: ^17, factor: 2 } }"}},
       "plan.sync.slow_workers.count",
       "17 slow workers of 16",
       "at most 16"},
      {{{13, "  data: 16"},
        {14, "  tensor: 1"},
        {15, "  pipeline: 1"},
        {16, "  sync: { algorithm: parameter_server, local_reduce: true, slow_workers: { count: ^3, factor: 2 } }"}},
       "plan.sync.slow_workers.count",
       "3 slow workers of 2",
       "at most 2"},
      {{{13, "  data: 16"},
        {14, "  tensor: 1"},
        {15, "  pipeline: 1"},
        {16, "  sync: { algorithm: parameter_server, every_micro_batch: ^true }"}},
       "plan.sync.every_micro_batch",
       "sent the gradients of each micro-batch",
       "false"},
      {{{13, "  data: ^16"},
        {14, "  tensor: 1"},
        {15, "  pipeline: 1"},
        {16, "  sync: { algorithm: parameter_server, placement: dedicated }"}},
       "plan.data",
       "the cluster has 8 GPUs beside those of its dedicated servers",
       "data: 8"},
      // 24 heads over 16 ways of tensor parallelism; 16 GPUs, so data and pipeline are 1
      {{{8, "    model: { family: gpt, layers: 24, hidden: 1536, heads: 24, vocabulary: 51200, sequence: 1024 }"},
        {13, "  data: 1"},
        {14, "  tensor: ^16"},
        {15, "  pipeline: 1"}},
       "plan.tensor",
       "24 heads are not divisible by 16",
       "divisor of 24"},
      {{{8, "    model: llama3-8b"}, {13, "  data: 1"}, {14, "  tensor: ^16"}, {15, "  pipeline: 1"}},
       "plan.tensor",
       "8 key–value heads are not divisible by 16",
       "divisor of 8"},
      {{{8, "    model: resnet-50"}, {14, "  tensor: ^2"}}, "plan.tensor", "no transformer", "1, and more data"},
      // 16 GPUs, 3 x 2 ranks a replica, no data stated
      {{{13, "  context: 1"}, {14, "  tensor: ^3"}}, "plan.tensor", "does not divide the 16 GPUs", "product is 16"},
      {{{3, "  node: rtx4090-x4"}, {4, "  nodes: ^2"}, {5, "  network: { nics_per_node: 0 }"}},
       "cluster.nodes",
       "2 nodes without a network",
       "nics_per_node"},
      {{{6, "workload: ^{}"}, {7, ""}, {8, ""}, {9, ""}, {10, ""}, {11, ""}},
       "workload",
       "0 kinds of workload",
       "exactly one of train"}};
  for (const Row& row : rows) {
    std::string text;
    for (std::size_t i = 0; i < good_lines().size(); ++i) {
      std::string line = good_lines()[i];
      for (const auto& [number, replacement] : row.replaced) {
        if (number == i + 1) line = replacement;
      }
      text += line + "\n";
    }
    check_complaint(std::move(text), row.key, row.wrong, row.right);
  }
}

TEST_CASE("Bad workloads") {
  struct Row {
    std::string text;  ///< the workload, flow style, marked
    std::string_view key, wrong, right;
  };
  const std::vector<Row> rows = {
      {"{ collective: { operation: ^all_reduced, size: 1 GB } }", "workload.collective.operation", "unknown value",
       "did you mean all_reduce?"},
      {"{ collective: { operation: all_reduce, size: ^1 GB/s } }", "workload.collective.size",
       "a bandwidth, not a size", "write GB"},
      {"{ collective: { operation: all_reduce, size: 1 GB, ranks: ^17 } }", "workload.collective.ranks",
       "17 ranks on 16 GPUs", "at most 16"},
      {"{ collective: { operation: all_reduce, size: 1 GB, algorithm: parameter_server, servers: ^17, placement: gpu } "
       "}",
       "workload.collective.servers", "17 servers on 16 GPUs", "at most 16"},
      {"{ collective: { operation: all_reduce, size: 1 GB, groups: ^3 } }", "workload.collective.groups",
       "16 ranks cannot be divided into 3 groups", "a divisor of 16"},
      {"{ collective: { operation: all_reduce, size: 1 GB, groups: ^0 } }", "workload.collective.groups",
       "out of range", "from 1"},
      {"{ collective: { operation: all_reduce, size: 1 GB, groups: 2, layout: ^stride } }",
       "workload.collective.layout", "unknown value", "did you mean strided?"},
      {"{ collective: { operation: all_reduce, size: 1 GB } }\nplan: { sync: { compression: ^fp16 } }",
       "plan.sync.compression", "a collective on its own", "a training workload"},
      {"{ collective: { operation: all_reduce, size: 1 GB }, ^operater: {} }", "workload.operater", "unknown key",
       "did you mean operator?"},
      {"{ operator: { kind: ^matmull, m: 1, n: 1, k: 1 } }", "workload.operator.kind", "unknown operator",
       "did you mean matmul?"},
      {"{ operator: ^{ m: 1, n: 1, k: 1 } }", "workload.operator.kind", "missing", "matmul"},
      {"{ operator: { kind: matmul, m: ^0, n: 1, k: 1 } }", "workload.operator.m", "out of range", "from 1"},
      {"{ operator: { kind: convolution, batch: 1, channels: 3, height: 4, width: 4, filters: 8, kernel: ^7 } }",
       "workload.operator.kernel", "larger than the padded input", "fits"},
      {"{ operator: { kind: attention, batch: 1, heads: 8, kv_heads: ^3, sequence: 8, head_dim: 8 } }",
       "workload.operator.kv_heads", "8 heads cannot share 3", "divisor of 8"},
      {"{ tasks: ^[] }", "workload.tasks", "no tasks", "at least one"},
      {"{ tasks: [ { id: a, on: ^gpu16, run: synchronize } ] }", "workload.tasks[0].on", "gpu16 does not exist",
       "gpu0 to gpu15"},
      {"{ tasks: [ { id: a, on: ^tpu0, run: synchronize } ] }", "workload.tasks[0].on", "unknown place", "disk"},
      {"{ tasks: [ { id: a, on: ^\"gpu0:x\", run: synchronize } ] }", "workload.tasks[0].on", "unknown queue",
       "gpu0:stream1"},
      {"{ tasks: [ { id: a, on: gpu0, run: ^{ sleep: 1 s, copy: { from: cpu, to: gpu0, size: 1 B } } } ] }",
       "workload.tasks[0].run", "2 pieces of work", "one"},
      {"{ tasks: [ { id: a, on: gpu0, run: { sleep: ^2 } } ] }", "workload.tasks[0].run.sleep", "no unit", "2 us"},
      {"{ tasks: [ { id: a, on: gpu0, run: synchronize, after: [^b] } ] }", "workload.tasks[0].after[0]",
       "no task \"b\"", "further up"},
      {"{ tasks: [ { id: a, on: cpu, run: synchronize }, { id: ^a, on: cpu, run: synchronize } ] }",
       "workload.tasks[1].id", "a second task", "of its own"}};
  for (const Row& row : rows) {
    std::string text = "cluster: { node: dgx-a100-80gb, nodes: 2 }\nworkload: " + row.text + "\n";
    check_complaint(std::move(text), row.key, row.wrong, row.right);
  }
}

TEST_CASE("Bad background traffic") {
  struct Row {
    std::string text;  ///< the value of background, flow style, marked
    std::string_view key, wrong, right;
  };
  const std::vector<Row> rows = {
      {"^{ from: gpu0, to: gpu1 }", "background", "a mapping where a list belongs", "a list"},
      {"[ { from: ^gpu16, to: gpu1 } ]", "background[0].from", "gpu16 does not exist", "gpu0 to gpu15"},
      {"[ { from: node0, to: gpu1 }, { from: node0, to: ^node2 } ]", "background[1].to", "node2 does not exist",
       "node0 to node1"},
      {"[ { from: ^node0/cpu2, to: gpu1 } ]", "background[0].from", "cpu2 does not exist", "cpu0 to cpu1"},
      {"[ { from: ^host of gpu16, to: gpu1 } ]", "background[0].from", "gpu16 does not exist", "gpu0 to gpu15"},
      {"[ { from: ^disk, to: gpu1 } ]", "background[0].from", "unknown place \"disk\"", "host of gpu<rank>"},
      {"[ { from: ^node, to: gpu1 } ]", "background[0].from", "unknown place", "node<number>"},
      {"[ { from: gpu1, to: ^gpu1 } ]", "background[0].to", "from gpu1 to gpu1", "another place"},
      {"[ ^{ from: gpu1 } ]", "background[0].to", "missing", ""},
      {"[ { from: gpu1, to: gpu0, rate: ^0 Gbit/s } ]", "background[0].rate", "zero", ""},
      {"[ { from: gpu1, to: gpu0, rate: ^-1 Gbit/s } ]", "background[0].rate", "negative", ""},
      {"[ { from: gpu1, to: gpu0, rate: ^20 GB } ]", "background[0].rate", "a size, not a bandwidth", ""},
      {"[ { from: gpu1, to: gpu0, ^speed: 20 GB/s } ]", "background[0].speed", "unknown key", ""}};
  for (const Row& row : rows) {
    std::string text =
        "cluster: { node: dgx-a100-80gb, nodes: 2 }\n"
        "workload: { collective: { operation: all_reduce, size: 1 GB } }\nbackground: " +
        row.text + "\n";
    check_complaint(std::move(text), row.key, row.wrong, row.right);
  }
  check_complaint(
      "cluster: { node: dgx-a100-80gb }\nworkload: { operator: { kind: copy, size: 1 GB } }\n"
      "background: ^[ { from: gpu0, to: gpu1 } ]\n",
      "background", "an operator meets nobody", "train, collective or tasks");
}

TEST_CASE("Two kinds of workload are one too many") {
  const Complaint complaint = complaint_about(
      "cluster: { node: dgx-a100-80gb }\n"
      "workload: { collective: { operation: all_reduce, size: 1 GB }, operator: { kind: copy, size: 1 GB } }\n");
  CHECK(complaint.text ==
        "bad.yaml:2:11: workload: 2 kinds of workload; exactly one of train, collective, operator or tasks");
}

TEST_CASE("Overrides name themselves") {
  const auto text_of = [](const std::string& change) { return complaint_about(good_text(), {change}).text; };
  CHECK(text_of("plan.tensr=2") == "--set plan.tensr=2: plan.tensr: unknown key; did you mean tensor?");
  CHECK(text_of("plan.tensor=4")
            .find("--set plan.tensor=4: plan.tensor: tensor 4 x pipeline 2 x context 1 x data 4 = "
                  "32, but the cluster has 16 GPUs") == 0);
  CHECK(text_of("plan.tensor") == "--set plan.tensor: this is no KEY=VALUE; for example plan.tensor=8");
  CHECK(text_of("plan..tensor=8").find("a part of this key is empty") != std::string::npos);
  CHECK(text_of("plan.tensor=").find("this is no KEY=VALUE") != std::string::npos);
  CHECK(text_of("plan.sync={ bucket: 3 MB/s }").find("plan.sync.bucket: \"3 MB/s\" is a bandwidth") !=
        std::string::npos);
  CHECK(text_of("plan.sync={ bucket").find("every bracket closed") != std::string::npos);
}
