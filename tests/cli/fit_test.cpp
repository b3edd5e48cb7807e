#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

const std::string table =
    "case,group,cluster.node,workload.operator.kind,workload.operator.m,workload.operator.n,workload.operator.k,"
    "workload.operator.precision,measured.time\n"
    "a,t4,t4-x1,matmul,4096,4096,4096,fp16,4 ms\n"
    "b,t4,t4-x1,matmul,2048,4096,4096,fp16,2 ms\n"
    "c,v100,dgx1-v100-16gb,matmul,4096,4096,4096,fp16,1.5 ms\n";

}  // namespace

TEST_CASE("fit prints what the constants become and how far off they leave each group") {
  const TemporaryFolder folder;
  CHECK_THAT(output_of({"fit", "--cases", folder.file("t.csv", table), "--constants",
                        "matmul.fixed_us,matmul.tile_loss", "--budget", "30"}),
             Catch::Contains("matmul.fixed_us") && Catch::Contains("v100-sxm2-16gb"));
}

TEST_CASE("fit leaves GPUs out") {
  const TemporaryFolder folder;
  const std::string cases = folder.file("t.csv", table);
  CHECK_THAT(output_of({"fit", "--cases", cases, "--leave-one-out", "--budget", "20"}),
             Catch::Contains("\"gpu\": \"t4\"") && Catch::Contains("power.turing_tensor_pj"));
}

TEST_CASE("fit refuses unknown constants and GPUs") {
  const TemporaryFolder folder;
  const std::string cases = folder.file("t.csv", table);
  CHECK(run_program({"fit", "--cases", cases, "--constants", "matmul.fixed"}).status == 2);
  CHECK(run_program({"fit", "--cases", cases, "--leave-out", "h100"}).status == 2);
  CHECK(run_program({"fit"}).status == 2);
}

TEST_CASE("A roofline is printed and drawn; a collective has none") {
  const TemporaryFolder folder;
  CHECK_THAT(output_of({"plot", "roofline", "accelerator-roofline", "-o", folder.file("out.svg")}),
             Catch::Contains("depthwise"));
  CHECK_THAT(text_of(folder.file("out.svg")), Catch::Contains("matrix product"));
  CHECK(run_program({"plot", "roofline", "sync-ring-4"}).status == 2);
}

}  // namespace foretrain::test
