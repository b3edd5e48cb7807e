// Expected outputs in tests/golden. `make golden` writes them anew; the difference is then read before it is committed.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace foretrain::test {

/// The file's text; empty when there is none.
inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The expected output of that name. With FORETRAIN_GOLDEN=write in the environment it is first set to `actual`.
inline std::string golden(const std::string& name, std::string_view actual) {
  const std::filesystem::path path = std::filesystem::path(FORETRAIN_SOURCE_DIR) / "tests" / "golden" / name;
  const char* mode = std::getenv("FORETRAIN_GOLDEN");
  if (mode != nullptr && std::string_view(mode) == "write") std::ofstream(path, std::ios::binary) << actual;
  return text_of(path);
}

}  // namespace foretrain::test
