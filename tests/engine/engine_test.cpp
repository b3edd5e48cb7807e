// The first use of SimGrid in a process.
#include <signal.h>
#include <unistd.h>

#include <simgrid/s4u.hpp>

#include "model/base/process.hpp"
#include "sim/link_sharing.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("SimGrid leaves signals as they were") {
  Process child = Process::copy([] {
    signal(SIGINT, SIG_DFL);
    check_link_sharing();
    raise(SIGINT);
  });
  CHECK(child.wait().signal == SIGINT);
}

TEST_CASE("A process that uses SimGrid itself gets an error: this cannot be shared") {
  Process child = Process::copy([] {
    char name[] = "test", quiet[] = "--log=root.threshold:critical";
    char* argv[] = {name, quiet, nullptr};
    int argc = 2;
    simgrid::s4u::Engine engine(&argc, argv);
    try {
      check_link_sharing();
    } catch (const std::runtime_error& error) {
      _exit(std::string_view(error.what()).find("in use by others") != std::string_view::npos ? 7 : 1);
    }
  });
  CHECK(child.wait().status == 7);
}
