// Behind main.cpp of the test programs of .ci/mutants: each test case tells what it passes in a folder of its own, with
// its name in the file `name`. Processes that it starts tell theirs there.
#include <sys/stat.h>

#include <fstream>
#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Listener = Catch::EventListenerBase;
#else
#include <catch2/catch.hpp>
using Listener = Catch::TestEventListenerBase;
#endif

namespace {

struct Cases : Listener {
  using Listener::Listener;

  void testCaseStarting(const Catch::TestCaseInfo& test) override {
    static const char* const given = std::getenv("FORETRAIN_REACHED");
    static const std::string all = given != nullptr ? given : "";
    static int number = 0;
    if (all.empty()) return;
    const std::string own = all + "/case" + std::to_string(++number);
    mkdir(own.c_str(), 0777);
    std::ofstream(own + "/name") << test.name;
    setenv("FORETRAIN_REACHED", own.c_str(), 1);
    for (bool& passed : foretrain_passed) passed = false;
  }
};

CATCH_REGISTER_LISTENER(Cases)

}  // namespace
