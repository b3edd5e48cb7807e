// Bad failures, recoveries, prices and electricity; work that is divided by speed.
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

namespace {

constexpr BadLine bad_lines[] = {
    {5, "  failures: ^llama4-h100", "cluster.failures", "unknown failure rates", "llama3-h100"},
    {5, "  failures: { preset: ^rsc-3-a100 }", "cluster.failures.preset", "unknown failure rates", "did you mean rsc-"},
    {5, "  failures: ^{ seed: 2 }", "cluster.failures", "nothing fails", "gpu: 50000 h"},
    {5, "  failures: { gpu: ^0 /hour }", "cluster.failures.gpu", "no failures", "above zero"},
    {5, "  failures: { gpu: 50000 h, switches: ^0 }", "cluster.failures.switches", "out of range", "from 1"},
    {5, "  failures: { stragglers: { gpu: 1000 h, speed: ^120 %, noticed: 1 h } }", "cluster.failures.stragglers.speed",
     "120 %", "up to 100 %"},
    {5, "  failures: ^{ gpu: 50000 h }", "cluster.failures", "saves nothing", "every: auto"},
    {11, "    checkpoint: { every: ^auto }", "workload.train.checkpoint.every", "without failures", "cluster.failures"},
    {11, "    recovery: ^{ spares: 2 }", "workload.train.recovery", "nothing fails", "cluster.failures"},
    {3, "  node: ^dgx-a100-80gb\n  price: on_demand", "cluster.node", "unknown machine with prices", "p4d.24xlarge"},
    {5, "  price: { of: ^p5.48xlrge, purchase: on_demand }", "cluster.price.of", "unknown machine", "p5.48xlarge"},
    {5, "  price: { of: p5.48xlarge, purchase: ^on_demnd }", "cluster.price.purchase", "unknown way to buy",
     "did you mean on_demand?"},
    {5, "  energy: ^frnce", "cluster.energy", "unknown grid", "did you mean france?"},
    {5, "  energy: { grid: ^56 }", "cluster.energy.grid", "no grid", "56 g/kWh"},
    {5, "  energy: { pue: ^0.9 }", "cluster.energy.pue", "less electricity", "1 or more"},
    {16, "  stage_layers: ^[10, 10, 4]", "plan.stage_layers", "layers of 3 stages", "pipeline: 2"},
    {16, "  stage_layers: ^[10, 10]", "plan.stage_layers", "20 layers in all, but the model has 24", "add up to 24"},
    {16, "  stage_layers: ^[12, 0, 12]", "plan.stage_layers", "a stage between others without a layer", "the first"},
    {16, "  stage_layers: ^[0, 12, 12]", "plan.stage_layers", "layers of 3 stages", "pipeline: 2"},
    {16, "  stage_layers: ^[12, 12, 0]", "plan.stage_layers", "layers of 3 stages", "pipeline: 2"},
    {16, "  stage_layers: ^fast", "plan.stage_layers", "no layers", "by_speed"},
    {16, "  split: ^best", "plan.split", "between pipelines", "stage_layers: by_speed"},
};

}  // namespace

TEST_CASE("Bad failures, prices and splits: where, what is wrong, what would be right") { check_bad_lines(bad_lines); }

TEST_CASE("The memory of the next machine keeps no checkpoint where there is none") {
  check_complaint(
      "cluster: { node: dgx-a100-80gb }\n"
      "workload: { train: { model: gpt2, global_batch: 8, checkpoint: { every: 100, mode: ^in_memory } } }\n",
      "workload.train.checkpoint.mode", "without a neighbour", "two nodes");
}
