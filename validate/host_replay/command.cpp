#include "validate/host_replay/command.hpp"

#include <fmt/format.h>

#include <system_error>

#include "model/base/error.hpp"
#include "model/base/text.hpp"

namespace foretrain {

FilterResult run_command(const std::vector<std::string>& command, const std::string& input) {
  FilterResult result;
  try {
    result = run_filter(command, input);
  } catch (const std::system_error& error) {
    throw UsageError(fmt::format("{}: {}", command.front(), error.code().message()));
  }
  if (result.status == 0) return result;
  throw UsageError(fmt::format("{}: {}", fmt::join(command, " "), trim(result.errors)));
}

}  // namespace foretrain
