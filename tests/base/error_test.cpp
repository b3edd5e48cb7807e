#include "model/base/error.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE(
    "A mistake of the program's own says where it was noticed, from the source tree's root, and asks for a report") {
  const int line = __LINE__ + 1;
  const InternalError error("two and two are five");
  CHECK(error.what() == "internal error: two and two are five (tests/base/error_test.cpp:" + std::to_string(line) +
                            "); please report this, with the scenario");
  // Once is enough, however many catch it and throw it again.
  CHECK(internal_error_text(error.what()) == error.what());
  CHECK(internal_error_text("map::at") == "internal error: map::at; please report this, with the scenario");
}
