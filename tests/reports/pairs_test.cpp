#include "reports/measured/accuracy.hpp"

#include "model/base/error.hpp"
#include "model/scenario/load/cases.hpp"
#include "reports/measured/measured.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

/// Cases with a measured throughput and, beside them, what is "predicted".
struct Table {
  std::vector<Case> cases;
  std::vector<Rival> rivals;
};

Table table(const std::string& rows, const std::vector<double>& predicted) {
  Table result{read_cases_text("case,group,workload.train.model,plan.data,plan.sync.algorithm,plan.sync.placement,"
                               "measured.samples_per_second\n" +
                                   rows,
                               "test.csv"),
               {}};
  for (std::size_t i = 0; i < result.cases.size(); ++i) {
    const Case& row = result.cases[i];
    result.rivals.push_back(
        {&row, {row.name, row.group, "samples_per_second", row.measured.front().value, predicted[i]}});
  }
  return result;
}

}  // namespace

TEST_CASE("Pairs differ in the chosen keys and in nothing else") {
  // Of one model on two GPUs: ring 110 against server 100, predicted the other way round; on four GPUs 220 and 180,
  // predicted in order. Between two and four GPUs there are no pairs, nor between the models.
  const Table rows = table(
      "a,g,vgg-16,2,ring,,110\nb,g,vgg-16,2,parameter_server,cpu,100\n"
      "c,g,vgg-16,4,ring,,220\nd,g,vgg-16,4,parameter_server,cpu,180\n"
      "e,g,lenet,4,tree,,1000\n",
      {100.0, 105.0, 210.0, 200.0, 900.0});
  const PairReport report = compare_pairs(rows.rivals, {"plan.sync"});
  CHECK(report.n == 2);
  CHECK(report.right == 1);
  CHECK(report.share() == 0.5);
  REQUIRE(report.wrong.size() == 1);
  CHECK(report.wrong[0].better == "a");
  CHECK(report.wrong[0].worse == "b");
  CHECK(report.wrong[0].measured == Approx(1.1));
  CHECK(report.wrong[0].predicted == Approx(100.0 / 105.0));
}

TEST_CASE("Pairs closer together than the spread of repeated measurements do not count") {
  // 105 against 100 is 5 % apart, no more; 106 is.
  const Table equal = table("a,g,vgg-16,2,ring,,105\nb,g,vgg-16,2,tree,,100\n", {1.0, 2.0});
  CHECK(compare_pairs(equal.rivals, {"plan.sync"}).n == 0);
  CHECK(compare_pairs(equal.rivals, {"plan.sync"}).close == 1);
  const Table apart = table("a,g,vgg-16,2,ring,,106\nb,g,vgg-16,2,tree,,100\n", {1.0, 2.0});
  CHECK(compare_pairs(apart.rivals, {"plan.sync"}).n == 1);
}

TEST_CASE("Of several measurements of one scenario the best is compared") {
  // The ring was measured twice; 120 beats the server's 110, 90 does not.
  const Table rows =
      table("a,g,vgg-16,2,ring,,90\nb,g,vgg-16,2,ring,,120\nc,g,vgg-16,2,tree,,110\n", {130.0, 130.0, 100.0});
  const PairReport report = compare_pairs(rows.rivals, {"plan.sync"});
  CHECK(report.n == 1);
  CHECK(report.right == 1);
}

TEST_CASE("Times count the other way round than rates") {
  std::vector<Case> cases =
      read_cases_text("case,plan.sync.algorithm,measured.step_time\nfast,ring,1 s\nslow,naive,2 s\n", "test.csv");
  std::vector<Rival> rivals;
  for (const Case& row : cases) {
    rivals.push_back({&row, {row.name, "g", "step_time", row.measured.front().value, row.measured.front().value}});
  }
  CHECK(compare_pairs(rivals, {"plan.sync"}).right == 1);
}

TEST_CASE("All the chosen keys must differ, and groups are named") {
  // The first two differ in the machine alone, the last in both from each of them.
  std::vector<Case> cases = read_cases_text(
      "case,group,cluster.node,plan.sync.algorithm,measured.samples_per_second\n"
      "a,x,one,ring,100\nb,y,two,ring,200\nc,z,three,tree,400\n",
      "test.csv");
  std::vector<Rival> rivals;
  for (const Case& row : cases) {
    rivals.push_back({&row, {row.name, row.group, "samples_per_second", row.measured.front().value, 1.0}});
  }
  const PairReport report = compare_pairs(rivals, {"plan.sync", "cluster.node"});
  CHECK(report.n == 2);
  CHECK(report.right == 0);  // a tie is no prediction
  REQUIRE(report.groups.size() == 2);
  CHECK(report.groups[0].name == "x / z");
  CHECK(report.groups[1].name == "y / z");
}

TEST_CASE("A key that no case sets is refused") {
  const Table rows = table("a,g,vgg-16,2,ring,,110\n", {100.0});
  CHECK_THROWS_AS(compare_pairs(rows.rivals, {"plan.zync"}), UsageError);
  CHECK_THROWS_WITH(compare_pairs(rows.rivals, {"plan.zync"}), Catch::Contains("no case sets"));
}

}  // namespace foretrain::test
