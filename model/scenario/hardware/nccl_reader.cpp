#include "model/scenario/hardware/nccl_reader.hpp"

#include <charconv>
#include <string>

namespace foretrain {

namespace {

/// The whole number at the front of a text, and what follows it; -1 where there is none.
int take_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

NcclVersion read_nccl(const Field& field) {
  const std::string& written = field.text();
  if (written == "none") return no_nccl;
  std::string_view rest = written;
  NcclVersion version;
  version.major = take_number(rest);
  if (rest.starts_with('.')) rest.remove_prefix(1);
  version.minor = take_number(rest);
  // A patch changes no choice.
  while (rest.size() > 1 && (rest[0] == '.' || rest[0] == '-')) {
    rest.remove_prefix(1);
    if (take_number(rest) < 0) break;
  }
  if (version.major != 2 || version.minor < 0 || version.minor > 99 || !rest.empty()) {
    field.fail("\"" + written + "\" is no version of NCCL 2",
               "2.29, the version that the library prints; or none, where collectives are plain copies");
  }
  return version;
}

}  // namespace foretrain
