// Specifications of operators, as texts: what they are read as, and what is refused.

#include "tests/catch.hpp"
#include "validate/cuda/suites/operator_points.hpp"

using namespace foretrain::gpu;

TEST_CASE("Fields of an operator are read as the values that they state") {
  const OperatorSpec spec{"convolution",
                          {{"batch", "64"}, {"kernel", "[1, 7]"}, {"pad", "3"}, {"causal", "true"}, {"read", "2.5e6"}}};
  CHECK(spec.integer("batch") == 64);
  CHECK(spec.integer_or("groups", 1) == 1);
  CHECK(spec.pair_or("kernel", 1) == std::pair<std::int64_t, std::int64_t>(1, 7));
  CHECK(spec.pair_or("pad", 0) == std::pair<std::int64_t, std::int64_t>(3, 3));
  CHECK(spec.pair_or("stride", 2) == std::pair<std::int64_t, std::int64_t>(2, 2));
  CHECK(spec.flag("causal"));
  CHECK_FALSE(spec.flag("backward"));
  CHECK(spec.number_or("read", 0.0) == 2.5e6);
}

TEST_CASE("Fields that are no such value are refused by name") {
  const OperatorSpec spec{"matmul",
                          {{"m", "12x"}, {"n", ""}, {"causal", "yes"}, {"kernel", "[1; 7]"}, {"read", "much"}}};
  CHECK_THROWS_WITH(spec.integer("m"), Catch::Contains("matmul: m: \"12x\" is no whole number"));
  CHECK_THROWS_WITH(spec.integer("n"), Catch::Contains("no whole number"));
  CHECK_THROWS_WITH(spec.integer("k"), Catch::Contains("matmul: k: missing"));
  CHECK_THROWS_WITH(spec.flag("causal"), Catch::Contains("neither true nor false"));
  CHECK_THROWS_WITH(spec.pair_or("kernel", 1), Catch::Contains("[height, width]"));
  CHECK_THROWS_WITH(spec.number_or("read", 0.0), Catch::Contains("is no number"));
}

TEST_CASE("Operators bound by memory are known by the bytes that they move") {
  // 1000 numbers of two bytes: two inputs, and as many results as are not stated, one.
  const Traffic sum = traffic_of({"elementwise", {{"elements", "1000"}, {"inputs", "2"}, {"precision", "bf16"}}});
  CHECK(sum.read == 4000);
  CHECK(sum.written == 2000);
  CHECK_FALSE(sum.gathered());
  CHECK(traffic_of({"reduction", {{"elements", "1000"}, {"outputs", "0"}}}).written == 0);
  // A row of eight fp32 numbers for each of three tokens, whatever the table's length.
  const Traffic rows = traffic_of({"embedding", {{"tokens", "3"}, {"width", "8"}, {"vocabulary", "50257"}}});
  CHECK(rows.read == 96);
  CHECK(rows.gathered());
  const Traffic task = traffic_of({"traffic", {{"read", "2.5e6"}, {"written", "8"}, {"pattern", "gather"}}});
  CHECK(task.read == 2'500'000);
  CHECK(task.gathered());
  CHECK_THROWS_WITH(traffic_of({"softmax", {{"rows", "8"}, {"columns", "8"}}}), Catch::Contains("no operator"));
  CHECK_THROWS_AS(traffic_of({"traffic", {{"read", "-1"}}}), std::invalid_argument);
}

TEST_CASE("A point's name says all of it, in the order of its keys") {
  const OperatorSpec spec{"matmul", {{"n", "2"}, {"m", "1"}, {"precision", "bf16"}}};
  CHECK(name_of(spec) == "matmul m=1 n=2 precision=bf16");
  CHECK(scenario_of(spec) == std::map<std::string, std::string>{{"workload.operator.kind", "matmul"},
                                                                {"workload.operator.m", "1"},
                                                                {"workload.operator.n", "2"},
                                                                {"workload.operator.precision", "bf16"}});
}

TEST_CASE("A list of points holds each once, and quick ones first") {
  PointList list;
  list.add({"matmul", {{"m", "1"}}}, "first");
  list.add({"matmul", {{"m", "2"}}}, "second", true);
  list.add({"matmul", {{"m", "1"}}}, "again", true);  // becomes quick, and stays of its family
  list.add({"matmul", {{"m", "3"}}}, "third");
  std::string families;
  for (const OperatorPoint& point : list.finish()) families += point.family + (point.quick ? " quick, " : ", ");
  CHECK(families == "first quick, second quick, third, ");
}

TEST_CASE("Drawn sizes lie between their bounds, in their unit, and are the same everywhere") {
  Draw draw(7), same(7);
  int below = 0;
  for (int i = 0; i < 400; ++i) {
    const std::int64_t size = draw.logarithmic(64, 16384, 16);
    CHECK((size >= 64 && size <= 16384 && size % 16 == 0 && size == same.logarithmic(64, 16384, 16)));
    below += size < 1024 ? 1 : 0;
  }
  // 1024 is the middle of 64 and 16384 in logarithms: half of 400 are below it, within three times sqrt(400)/2.
  CHECK(std::abs(below - 200) < 30);
}

TEST_CASE("Flash attention by another library's kernel is said to be cuDNN's own where that is of another kind") {
  const OperatorSpec another{"attention", {{"attention", "flash"}, {"native", "false"}}};
  const OperatorSpec own{"attention", {{"attention", "flash"}}};
  CHECK(as_run(another, 90).fields == own.fields);  // Hopper: FlashAttention-3's kind
  CHECK(as_run(another, 100).fields == own.fields);
  CHECK(as_run(another, 80).fields == another.fields);  // Ampere: alike
  CHECK(as_run(own, 90).fields == own.fields);
}
