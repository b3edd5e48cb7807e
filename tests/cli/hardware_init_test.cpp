#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

TEST_CASE("A machine of one's own is written, drawn, planned for and predicted") {
  const TemporaryFolder folder;
  const std::string node = folder.file("node.yaml");
  const FilterResult init = run_program({"hardware", "init", "mine", "--gpu", "l40s", "--gpus", "4", "--switches", "2",
                                         "--nics", "2", "--nic-bandwidth", "100 Gbit/s", "-o", node});
  INFO(init.errors);
  REQUIRE(init.status == 0);
  check_has(text_of(node), {"nic_bandwidth: 100 Gbit/s ", "# Line rate per NIC and direction."});
  // Two GPUs and a card on each of two switches.
  CHECK_THAT(output_of({"plot", "topology", node, "-o", folder.file("node.svg")}),
             Catch::Contains("  cpu0\n  ├─ plx0           pcie4-x16, 26.0 GB/s\n  │  ├─ gpu0, gpu1  "));
  CHECK_THAT(text_of(folder.file("node.svg")), Catch::Contains("gpu3") && Catch::Contains("pcie4-x16, 26.0 GB/s"));
  const std::string scenario = folder.file("first.yaml");
  output_of({"init", "--model", "gpt2", "--node", node, "-o", scenario});
  output_of({"predict", scenario, "--fidelity", "estimate"});
  // It overwrites nothing, and says what is missing.
  CHECK(run_program({"hardware", "init", "--gpu", "l40s", "-o", node}).status == 2);
  CHECK_THAT(run_program({"hardware", "init"}).errors, Catch::Contains("--like NAME"));
  CHECK_THAT(run_program({"hardware", "init", "--gpu", "l40s", "--links", "ring"}).errors,
             Catch::Contains("write nvswitch, nvlink-mesh, nvlink-bridge or pcie"));
}

TEST_CASE("A name of the catalogue shows the tree of its machine, and a scenario the fabric between machines") {
  CHECK_THAT(run_program({"hardware", "show", "dgx-h100"}).output,
             Catch::Contains("gpu0 … gpu7 – nvswitch  18 x nvlink4, 378 GB/s"));
  const std::string cluster = output_of({"plot", "topology", "network-rail-optimised-fat-tree"});
  // Eight machines on a leaf, a leaf for each of eight cards; eight cards below a leaf and a quarter of them upwards.
  check_has(cluster, {"8 leaves, one a rail, 8 machines on each; NIC to leaf: 200 Gbit/s",
                      "2 spines; leaf to spines: 2 x 200 Gbit/s"});
}

}  // namespace foretrain::test
