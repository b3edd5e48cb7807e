#include "sim/child_process.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "model/base/error.hpp"
#include "sim/platform.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("what a child writes to shared memory is there afterwards, and nothing else is") {
  const SharedMemory memory(2 * sizeof(int));
  const std::span<int> shared = memory.as<int>(2);
  int own = 1;
  run_in_child([&] {
    shared[1] = own + 1;
    own = 7;
  });
  CHECK(shared[0] == 0);
  CHECK(shared[1] == 2);
  CHECK(own == 1);
}

TEST_CASE("a child's exception arrives with its words, however long") {
  CHECK_THROWS_WITH(run_in_child([] { throw std::invalid_argument("no such link"); }), "no such link");
  CHECK_THROWS_WITH(run_in_child([] { throw 7; }), "unknown exception");
  // Who can mend it is known here, too.
  CHECK_THROWS_AS(run_in_child([] { throw ImpossiblePlan("nothing can move"); }), ImpossiblePlan);
  CHECK_THROWS_AS(run_in_child([] { throw UsageError("too many flows"); }), UsageError);
  CHECK_THROWS_AS(run_in_child([] { throw InternalError("two runs"); }), std::logic_error);
  CHECK_THROWS_WITH(run_in_child([] { throw std::runtime_error(std::string(10'000, 'x')); }), std::string(4095, 'x'));
}

TEST_CASE("a child that dies is reported") {
  CHECK_THROWS_WITH(run_in_child([] { raise(SIGKILL); }), "the simulation's process was ended by signal 9 (Killed)");
  CHECK_THROWS_WITH(run_in_child([] { _exit(3); }), "the simulation's process ended with status 3");
}

TEST_CASE("children come one after the other without end") {
  const SharedMemory memory(sizeof(int));
  for (int i = 0; i < 50; ++i) run_in_child([&] { ++memory.as<int>(1)[0]; });
  CHECK(memory.as<int>(1)[0] == 50);
}

TEST_CASE("SimGrid shares links exactly, and allows one platform per process") {
  CHECK_NOTHROW(run_in_child(check_platform));
  CHECK_THROWS_WITH(run_in_child([] {
                      check_platform();
                      check_platform();
                    }),
                    "SimGrid allows one simulation per process");
}

TEST_CASE("pending output of the parent is written once") {
  // SimGrid flushes stdout before it runs; in a copy of this process that would be this process's text.
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  run_in_child([file] {
    dup2(fileno(file), STDOUT_FILENO);
    std::printf("once");
    run_in_child(check_platform);
    std::fflush(stdout);
  });
  std::rewind(file);
  std::string text(64, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  CHECK(text == "once");
}

TEST_CASE("SimGrid leaves signals as they were") {
  CHECK_THROWS_WITH(run_in_child([] {
                      check_platform();
                      raise(SIGINT);
                    }),
                    "the simulation's process was ended by signal 2 (Interrupt)");
}
