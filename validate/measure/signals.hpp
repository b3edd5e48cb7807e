// Ctrl-C and `kill` end a measurement in good order: code that waits asks for it, throws, and destructors clean up.
#pragma once

#include <stdexcept>

namespace foretrain {

/// The user ended the work.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

/// From now on SIGINT, SIGTERM and SIGHUP are noted instead of ending the process.
void catch_signals();
[[nodiscard]] bool interrupted() noexcept;
void throw_if_interrupted();

}  // namespace foretrain
