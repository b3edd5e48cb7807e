// The parts that the commands are made of, without the program.
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>
#include <system_error>

#include "model/base/error.hpp"
#include "reports/cli/vary.hpp"
#include "reports/cli/workers.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

using Values = std::vector<std::string>;

Result result_named(const std::string& name) {
  Result result;
  result.scenario = name;
  result.work = TasksResult{Seconds(1.0), {}};
  return result;
}

}  // namespace

TEST_CASE("Results come back in order, whatever the number of workers") {
  for (const int workers : {1, 2, 7}) {
    const std::vector<Outcome> outcomes =
        predict_all(5, workers, [](std::size_t i) { return result_named(std::to_string(i)); });
    REQUIRE(outcomes.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) CHECK(outcomes[i].result->scenario == std::to_string(i));
  }
  CHECK(predict_all(0, 3, [](std::size_t) { return result_named(""); }).empty());
}

TEST_CASE("What a worker throws comes back, and whose fault it is") {
  const std::vector<Outcome> outcomes = predict_all(5, 2, [](std::size_t i) -> Result {
    if (i == 0) throw UsageError("not like this");
    if (i == 1) throw std::runtime_error("it broke");
    if (i == 3) throw ImpossiblePlan("no switch adds up");
    if (i == 4) throw InternalError("two and two are five");
    return result_named("fine");
  });
  CHECK(outcomes[0].error == "not like this");
  CHECK(outcomes[0].bad_input);
  CHECK(outcomes[1].error == "it broke");
  CHECK_FALSE(outcomes[1].bad_input);
  CHECK(outcomes[2].result);
  CHECK(outcomes[3].error == "no switch adds up");
  CHECK(outcomes[3].bad_input);
  CHECK_THAT(outcomes[4].error, Catch::Contains("please report this, with the scenario"));
  CHECK_FALSE(outcomes[4].bad_input);
}

TEST_CASE("A worker that throws what is no exception goes on, and its siblings too") {
  const std::vector<Outcome> outcomes = predict_all(8, 3, [](std::size_t i) {
    if (i % 3 == 1) throw 7;
    return result_named("fine");
  });
  for (std::size_t i = 0; i < 8; ++i) CHECK(outcomes[i].result.has_value() == (i % 3 != 1));
  CHECK(outcomes[1].error == "an error without a text");
}

TEST_CASE("What another time may do is told from what is wrong") {
  std::vector<Reply::Kind> kinds(5);
  const TextTask task = [](std::size_t i) -> std::string {
    if (i == 0) throw std::bad_alloc();
    if (i == 1) throw std::system_error(EAGAIN, std::generic_category(), "cannot start a process");
    if (i == 2) raise(SIGKILL);
    if (i == 3) throw std::runtime_error("no such thing");
    return "fine";
  };
  answer_all(5, 2, task, [&](std::size_t i, const Reply& reply) { kinds[i] = reply.kind; });
  using Kind = Reply::Kind;
  CHECK(kinds == std::vector{Kind::interrupted, Kind::interrupted, Kind::interrupted, Kind::failure, Kind::answer});
}

TEST_CASE("Where descriptors are short, fewer workers do the work") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int next = dup(0);  // the lowest free one: four more are two pairs of sockets
  close(next);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(next) + 4;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  std::vector<Outcome> outcomes;
  CHECK_NOTHROW(outcomes = predict_all(20, 16, [](std::size_t) { return result_named("fine"); }));
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(std::ranges::count_if(outcomes, [](const Outcome& o) { return o.result.has_value(); }) == 20);
}

TEST_CASE("A worker that dies takes one prediction along, and no other") {
  const std::vector<Outcome> outcomes = predict_all(6, 2, [](std::size_t i) {
    if (i == 1) raise(SIGKILL);
    if (i == 4) _exit(3);
    return result_named("fine");
  });
  for (const std::size_t i : {0, 2, 3, 5}) CHECK(outcomes[i].result);
  CHECK_THAT(outcomes[1].error, Catch::Contains("signal 9"));
  CHECK_THAT(outcomes[4].error, Catch::Contains("status 3"));
}

TEST_CASE("What a worker leaves behind when it dies is done by another") {
  // Two workers take runs of several neighbours; a task in the middle of one kills its process.
  std::vector<int> replies(200);
  answer_all(
      replies.size(), 2,
      [](std::size_t i) {
        if (i == 3) raise(SIGKILL);
        return std::to_string(i);
      },
      [&](std::size_t i, const Reply& reply) {
        ++replies[i];
        CHECK((reply.kind == Reply::Kind::answer) == (i != 3));
        if (i != 3) CHECK(reply.text == std::to_string(i));
      });
  CHECK(std::count(replies.begin(), replies.end(), 1) == 200);
}

TEST_CASE("Values of a variation are listed, counted or multiplied") {
  CHECK(parse_variation("k=a, b").values == Values{"a", "b"});
  CHECK(parse_variation("k=1..4").values == Values{"1", "2", "3", "4"});
  CHECK(parse_variation("k=1..8x2").values == Values{"1", "2", "4", "8"});
  CHECK(parse_variation("k=1..10x2").values == Values{"1", "2", "4", "8"});
  CHECK(parse_variation("k=10..20+5").values == Values{"10", "15", "20"});
  CHECK(parse_variation("k=0..0.3+0.1").values == Values{"0", "0.1", "0.2", "0.3"});
  CHECK(parse_variation("k=25 MB..100 MBx2").values == Values{"25 MB", "50 MB", "100 MB"});
  CHECK(parse_variation("k=7..7").values == Values{"7"});
}

TEST_CASE("Commas inside a value do not divide it, and paths are no ranges") {
  CHECK(parse_variation("k={ a: 1, b: [2, 3] },c").values == Values{"{ a: 1, b: [2, 3] }", "c"});
  CHECK(parse_variation("k=\"a,b\",c").values == Values{"\"a,b\"", "c"});
  CHECK(parse_variation("k=../a.yaml,../b.yaml").values == Values{"../a.yaml", "../b.yaml"});
}

TEST_CASE("Variations that lead nowhere are refused") {
  for (const char* text : {"", "k", "=1", "k=", "k=1,,2", "k=4..1", "k=1..4x1", "k=1..4+0", "k=0..4x2", "k=1 MB..4 GB",
                           "k=0..1000000000"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_variation(text), UsageError);
  }
}

TEST_CASE("Keys that change together have their values side by side") {
  const Variation pairs = parse_variation("a,b=1:2,{x: 1, y: 2}:[3:4]");
  CHECK(pairs.keys() == Values{"a", "b"});
  CHECK(pairs.values_at(0) == Values{"1", "2"});
  CHECK(pairs.values_at(1) == Values{"{x: 1, y: 2}", "[3:4]"});
  const std::vector<Case> cases = combinations("base", {}, {pairs, {"c", {"5", "6"}}});
  REQUIRE(cases.size() == 4);
  CHECK(cases[1].name == "a=1 b=2 c=6");
  for (const char* text : {"a,b=1,2", "a,b=1:2:3", "a,=1:2", "a,b=1:"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_variation(text), UsageError);
  }
  CHECK_THROWS_AS(combinations("base", {}, {pairs, {"b", {"5"}}}), UsageError);
}

TEST_CASE("Combinations change the last key fastest") {
  const std::vector<Case> cases = combinations("base", {"c=9"}, {{"a", {"1", "2"}}, {"b", {"x", "y"}}});
  REQUIRE(cases.size() == 4);
  CHECK(cases[1].name == "a=1 b=y");
  CHECK(cases[2].name == "a=2 b=x");
  CHECK(cases[2].overrides.front().key == "c");
  CHECK(combinations("base", {}, {}).size() == 1);
  CHECK_THROWS_AS(combinations("base", {"a=1"}, {{"a", {"2"}}}), UsageError);
}

}  // namespace foretrain::test
