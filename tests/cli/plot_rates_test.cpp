#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

constexpr const char* two_products =
    "case,group,cluster.node,cluster.gpus_per_node,workload.operator.kind,workload.operator.m,workload.operator.n,"
    "workload.operator.k,workload.operator.precision,measured.time\n"
    "large,big,dgx-a100-80gb,1,matmul,4096,4096,4096,bf16,0.6 ms\n"
    "small,little,dgx-h100,1,matmul,512,512,512,fp16,10 us\n";

FilterResult plot_rates(const TemporaryFolder& folder, const std::vector<std::string>& more) {
  return run_program(
      with({"plot", "rates", "--cases", folder.file("cases.csv", two_products), "-o", folder.file("rates.svg")}, more));
}

}  // namespace

TEST_CASE("Rates are drawn in a panel for each machine, of rows that are wanted") {
  const TemporaryFolder folder;
  const FilterResult all = plot_rates(folder, {});
  INFO(all.errors);
  CHECK(all.status == 0);
  const std::string both = text_of(folder.file("rates.svg"));
  check_has(both, {"dgx-a100-80gb", "dgx-h100", "bf16: ", "TFLOP a second", "dots: measured; rings: predicted"});
  for (const std::vector<std::string>& one :
       {std::vector<std::string>{"--node", "dgx-h100"}, {"--where", "group=little"}}) {
    CHECK(plot_rates(folder, one).status == 0);
    const std::string svg = text_of(folder.file("rates.svg"));
    CHECK_THAT(svg, Catch::Contains("dgx-h100") && !Catch::Contains("dgx-a100"));
  }
}

TEST_CASE("What comes with the program has rates of every kind") {
  const TemporaryFolder folder;
  for (const char* kind : {"attention", "collectives"}) {
    output_of({"plot", "rates", "--kind", kind, "--node", "dgx-b200", "-o", folder.file("rates.svg")});
    CHECK_THAT(text_of(folder.file("rates.svg")), Catch::Contains("dgx-b200"));
  }
}

TEST_CASE("Rates that nobody measured are refused, and it is said what there is") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::vector<std::string>& arguments, const char* why) {
    const FilterResult result = plot_rates(folder, arguments);
    CHECK(result.status == 2);
    CHECK_THAT(words_of(result.errors), Catch::Contains(why));
    CHECK_FALSE(std::filesystem::exists(folder.file("rates.svg")));
  };
  refused({"--kind", "convolutions"}, "there is no convolutions; write products, attention or collectives");
  refused({"--kind", "attention"}, "no row of the tables measures attention on GPUs; write another --kind or --cases");
  refused({"--where", "group=huge"}, "measures products on GPUs where --where holds");
  refused({"--where", "group"}, "write COLUMN=VALUE");
  refused({"--node", "dgx-b200"},
          "--node dgx-b200: no products were measured there; they were on dgx-a100-80gb, dgx-h100");
}

TEST_CASE("A row that cannot be predicted is named and left out of the rates") {
  const TemporaryFolder folder;
  // No switch of that machine adds up.
  const std::string table = folder.file("messages.csv",
                                        "case,base,workload.collective.algorithm,measured.time\n"
                                        "good,sync-ring-4,ring,15 ms\nodd,sync-ring-4,in_network,15 ms\n");
  const FilterResult result =
      run_program({"plot", "rates", "--kind", "collectives", "--cases", table, "-o", folder.file("rates.svg")});
  INFO(result.errors);
  CHECK(result.status == 1);
  CHECK_THAT(result.errors, Catch::Contains("odd: "));
  CHECK(std::filesystem::exists(folder.file("rates.svg")));
}

}  // namespace foretrain::test
