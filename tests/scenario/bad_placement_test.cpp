// Bad orders of the parallel dimensions, bad placements, bad groups of nodes.
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

TEST_CASE("Bad orders and placements") {
  // data 4 x tensor 2 x pipeline 2 on two nodes of eight
  check_bad_lines(std::vector<BadLine>{
      {15, "  pipeline: 2\n  order: ^tensor-data", "plan.order", "without pipeline, which has 2 ranks",
       "tensor-data-pipeline"},
      {15, "  pipeline: 2\n  order: ^tensor-data-pipeline-tensor", "plan.order", "tensor twice", "once"},
      {15, "  pipeline: 2\n  order: ^tensor-replica-pipeline", "plan.order", "unknown dimension \"replica\"",
       "tensor, context, expert, data or pipeline"},
      {15, "  pipeline: 2\n  order: ^[tensor, data, pipeline]", "plan.order", "a list where a single value belongs",
       "one value"},
      {15, "  pipeline: 2\n  placement: [ 0, ^2 ]", "plan.placement[1]", "node 2 does not exist", "0 to 1"},
      {15, "  pipeline: 2\n  placement: [ 0..1, ^1 ]", "plan.placement[1]", "node 1 twice", "once"},
      {15, "  pipeline: 2\n  placement: [ ^1..0 ]", "plan.placement[0]", "ends before it begins", "0..1"},
      {15, "  pipeline: 2\n  placement: [ ^first ]", "plan.placement[0]", "\"first\" is no node", "0..7"},
      {15, "  pipeline: 2\n  placement: ^[]", "plan.placement", "no nodes", "[0..7, 12..15]"},
      {15, "  pipeline: 2\n  placement: ^scattered", "plan.placement", "without leaves", "fat_tree"},
      {15, "  pipeline: 2\n  placement: ^[ 1 ]", "plan.placement", "1 nodes with 8 GPUs for", "data: 2"},
      {16, "  placement: ^[ 1, 0 ]\n  sync: { algorithm: parameter_server, servers: 2 }", "plan.placement",
       "with parameter servers", "a collective"},
  });
}

TEST_CASE("Bad groups of nodes") {
  struct Row {
    std::string cluster, rest;  ///< marked
    std::string_view key, wrong, right;
  };
  const std::string train =
      "workload: { train: { model: { family: gpt, layers: 4, hidden: 1024, heads: 16, sequence: 1024, vocabulary: "
      "50000 }, global_batch: 64 } }";
  const std::string two = "{ groups: [ { node: dgx-h100 }, { node: dgx-a100-80gb, nodes: 2 } ] }";
  const std::vector<Row> rows = {
      {"{ groups: ^[] }", train, "cluster.groups", "no groups", "dgx-h100"},
      {"{ groups: ^{ node: dgx-h100 } }", train, "cluster.groups", "where a list belongs", "a list"},
      {"{ node: ^dgx-h100, groups: [ { node: dgx-h100 } ] }", train, "cluster.node", "node beside groups",
       "inside of each group"},
      {"{ nodes: ^3, groups: [ { node: dgx-h100 } ] }", train, "cluster.nodes", "nodes beside groups",
       "inside of each group"},
      {"{ groups: [ ^{ nodes: 2 } ] }", train, "cluster.groups[0].node", "missing", ""},
      {"{ groups: [ { node: dgx-h100, gpus_per_node: ^9 } ] }", train, "cluster.groups[0].gpus_per_node",
       "9 GPUs, but dgx-h100 has 8", "at most 8"},
      {"{ groups: [ { node: dgx-h100 }, { node: dgx-a100-80gb, network: { fabric: ^fat-tree } } ] }", train,
       "cluster.groups[1].network.fabric", "a fabric of its own", "cluster.network.fabric"},
      {"{ groups: [ { node: dgx-h100 }, { node: dgx-a100-80gb, network: { queue_pairs: ^4 } } ] }", train,
       "cluster.groups[1].network.queue_pairs", "a queue_pairs of its own", "cluster.network.queue_pairs"},
      {"{ groups: [ { node: dgx-h100 }, ^{ node: rtx4090-x1, network: { nics_per_node: 0 } } ] }", train,
       "cluster.groups[1].nodes", "2 nodes without a network", "nics_per_node"},
      {"{ groups: [ { node: dgx-h100 }, { node: dgx-a100-80gb } ], faults: [ { node: ^2, gpu: 1, speed: 50 % } ] }",
       train, "cluster.faults[0].node", "node 2 does not exist", "0 to 1"},
      {"{ groups: [ { node: dgx-h100 }, { node: dgx-a100-80gb, gpus_per_node: 4 } ], faults: [ { node: 1, gpu: ^5, "
       "speed: 50 % } ] }",
       train, "cluster.faults[0].gpu", "GPU 5 does not exist", "0 to 3"},
      {"{ groups: ^[ { node: dgx-h100 }, { node: dgx-a100-80gb } ] }",
       "workload: { operator: { kind: matmul, m: 8, n: 8, k: 8 } }", "cluster.groups", "on one of them",
       "cluster.node"},
      {"{ groups: ^[ { node: dgx-h100 }, { node: dgx-a100-80gb } ] }",
       train + "\nplan: { sync: { algorithm: parameter_server, servers: 2 } }", "cluster.groups",
       "with parameter servers", "a collective"},
      {two, train + "\nplan: { data: 24, offload: ^optimizer }", "plan.offload", "several kinds of nodes", "none"},
      {two, train + "\nplan: { placement: [ 0, ^3 ] }", "plan.placement[1]", "node 3 does not exist", "0 to 2"},
  };
  for (const Row& row : rows) {
    check_complaint("cluster: " + row.cluster + "\n" + row.rest + "\n", row.key, row.wrong, row.right);
  }
}
