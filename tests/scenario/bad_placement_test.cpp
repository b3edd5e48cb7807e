// Bad orders of the parallel dimensions and bad placements.
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
