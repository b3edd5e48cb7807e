// Bad shapes of operators.
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

TEST_CASE("Bad operators") {
  struct Row {
    std::string text;  ///< the operator, flow style, marked
    std::string_view key, wrong, right;
  };
  const std::vector<Row> rows = {
      {"kind: matmul, m: 1, n: 1, k: 1, transpose_a: ^yes", "workload.operator.transpose_a", "", "true"},
      {"kind: matmul, m: 1, n: 1, k: 1, precision: bf16, cast: ^true", "workload.operator.cast", "not cast", "fp8"},
      {"kind: copy, size: 1 MB, cast: ^false", "workload.operator.cast", "not cast", "a matmul"},
      {"kind: layer_norm, rows: ^0, columns: 8", "workload.operator.rows", "out of range", "from 1"},
      {"kind: pooling, batch: 1, channels: 1, height: 4, width: 4, kernel: ^5", "workload.operator.kernel",
       "larger than the padded input", "fits"},
      {"kind: optimizer, parameters: 8, tensors: ^0", "workload.operator.tensors", "out of range", "from 1"},
      {"kind: memory_access, working_set: ^2 B", "workload.operator.working_set", "smaller than one element",
       "element"},
      {"kind: memory_access, working_set: 1 MB, pattern: strided, stride: ^2 B", "workload.operator.stride",
       "shorter than one element", "element"},
      {"kind: memory_access, working_set: 1 MB, stride: ^128 B", "workload.operator.stride", "has no stride",
       "strided"},
      {"kind: memory_access, working_set: ^1", "workload.operator.working_set", "no unit", "B"}};
  for (const Row& row : rows) {
    check_complaint("cluster: { node: dgx-a100-80gb }\nworkload: { operator: { " + row.text + " } }\n", row.key,
                    row.wrong, row.right);
  }
}
