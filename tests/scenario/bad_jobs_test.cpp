// Bad jobs on the same fabric.
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

namespace {

constexpr std::string_view four_nodes = "cluster: { node: dgx-a100-80gb, nodes: 4 }\n";
constexpr std::string_view training =
    "workload: { train: { model: { family: gpt, layers: 4, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 50000 "
    "}, global_batch: 64 } }\n";

}  // namespace

TEST_CASE("Bad jobs") {
  struct Row {
    std::string text;  ///< behind a cluster of four nodes and a training; marked
    std::string_view key, wrong, right;
  };
  const Row rows[] = {
      {"jobs: ^[]", "jobs", "no jobs", "other.yaml"},
      {"jobs: ^{ scenario: gpt2-xl-dgx-a100, nodes: 3 }", "jobs", "where a list belongs", "a list"},
      {"jobs: [ ^{ scenario: gpt2-xl-dgx-a100 } ]", "jobs[0].nodes", "missing", ""},
      {"jobs: [ ^{ nodes: 3 } ]", "jobs[0].scenario", "missing", ""},
      {"jobs: [ { scenario: ^gpt2-xl-dgx-a101, nodes: 3 } ]", "jobs[0].scenario", "gpt2-xl-dgx-a101",
       "gpt2-xl-dgx-a100"},
      {"jobs: [ { scenario: gpt2-xl-dgx-a100, nodes: ^4 } ]", "jobs[0].nodes", "node 4 does not exist", "0 to 3"},
      {"jobs: [ { scenario: gpt2-xl-dgx-a100, nodes: 3 }, { scenario: gpt2-xl-dgx-a100, nodes: [ 0, ^3 ] } ]",
       "jobs[1].nodes[1]", "node 3 twice", "once"},
      {"jobs: [ { scenario: gpt2-xl-dgx-a100, nodes: 3 } ]\nplan: { placement: [ 0, ^3 ] }", "plan.placement[1]",
       "node 3 is another job's", "no entry of jobs"},
      {"jobs: [ { scenario: ^sync-all-reduce-8-h100, nodes: 3 } ]", "jobs[0].scenario", "trains nothing",
       "workload: { train"},
      {"jobs: [ { scenario: ^contention-checkpoint-beside-training, nodes: 3 } ]", "jobs[0].scenario",
       "brings along background", "in one scenario"},
      {"jobs: ^[ { scenario: gpt2-xl-dgx-a100, nodes: 0 }, { scenario: gpt2-xl-dgx-a100, nodes: 1 }, { scenario: "
       "gpt2-xl-dgx-a100, nodes: 2 }, { scenario: gpt2-xl-dgx-a100, nodes: 3 } ]",
       "jobs", "all nodes are other jobs'", "larger"},
      {"jobs: ^[ { scenario: gpt2-xl-dgx-a100, nodes: 3 } ]\nplan: { sync: { algorithm: parameter_server } }", "jobs",
       "parameter servers", "a collective"},
  };
  for (const Row& row : rows) {
    check_complaint(std::string(four_nodes) + std::string(training) + row.text + "\n", row.key, row.wrong, row.right);
  }
  check_complaint(std::string(four_nodes) +
                      "workload: { collective: { operation: all_reduce, size: 1 GB } }\njobs: ^[ { scenario: "
                      "gpt2-xl-dgx-a100, nodes: 3 } ]\n",
                  "jobs", "trains nothing", "train");
  check_complaint("cluster: { node: dgx-a100-80gb, nodes: 4, jitter: ^{ compute: 2 % } }\n" + std::string(training) +
                      "jobs: [ { scenario: gpt2-xl-dgx-a100, nodes: 3 } ]\n",
                  "cluster.jitter", "beside other jobs", "one of the two");
}
