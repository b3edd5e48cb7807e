#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace foretrain {

/// What the operating system refused, by the number that it left in errno.
[[noreturn]] inline void fail_with(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace foretrain
