// Pages and drawings that are compared as wholes.
#pragma once

#include "tests/catch.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

/// The text is that of the file in tests/golden/whole.
inline void check_whole(const std::string& name, const std::string& text) {
  CHECK(text == golden("whole/" + name, text));
}

}  // namespace foretrain::test
