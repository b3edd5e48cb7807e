// Error messages of wrong input.
#pragma once
#include "model/base/error.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

/// Why `work` is refused; "accepted" where it is not.
template <class Error = ScenarioError, class Work>
std::string complaint_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace foretrain::test
