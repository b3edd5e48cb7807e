#include "model/base/own_file.hpp"

#include "tests/catch.hpp"

namespace foretrain {

TEST_CASE("Code of a program lies in the program's file", "[own_file]") {
  // This test is linked into a program whole; tests/python looks for the catalogue from a library that Python loads.
  CHECK(own_file() == std::filesystem::read_symlink("/proc/self/exe"));
}

}  // namespace foretrain
