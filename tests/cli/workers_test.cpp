// Predictions in processes of their own.
#include <sys/resource.h>
#include <unistd.h>
#include <csignal>
#include <new>
#include <system_error>

#include "model/base/error.hpp"
#include "reports/cli/workers.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

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
  const std::vector<Outcome> outcomes = predict_all(6, 2, [](std::size_t i) -> Result {
    if (i == 0) throw UsageError("not like this");
    if (i == 1) throw std::runtime_error("it broke");
    if (i == 3) throw ImpossiblePlan("no switch adds up");
    if (i == 4) throw InternalError("two and two are five");
    if (i == 5) throw 7;
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
  CHECK(outcomes[5].error == "an error without a text");
}

TEST_CASE("What another time may do is distinguished from what is wrong") {
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
  CHECK(std::ranges::count(replies, 1) == 200);
}

}  // namespace foretrain::test
