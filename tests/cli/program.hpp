// Runs the built program as a user would.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "model/base/process.hpp"
#include "model/base/text.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

/// Runs `foretrain` with these arguments on the catalogue of the source tree.
inline FilterResult run_program(const std::vector<std::string>& arguments) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
  std::vector<std::string> command = {FORETRAIN_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_filter(command, "");
}

/// Output of a command that succeeds.
inline std::string output_of(const std::vector<std::string>& arguments) {
  const FilterResult result = run_program(arguments);
  INFO(arguments.front() << ": " << result.output << result.errors);
  REQUIRE(result.status == 0);
  return result.output;
}

/// A text has all these words.
inline void check_has(const std::string& text, const std::vector<std::string>& all) {
  for (const std::string& words : all) CHECK_THAT(text, Catch::Contains(words));
}

/// Wrong input: nothing is printed, and a complaint has these words.
inline void check_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& complaint) {
  const FilterResult result = run_program(arguments);
  INFO(arguments.front() << ": " << result.errors);
  CHECK(result.status == 2);
  CHECK(result.output.empty());
  check_has(result.errors, complaint);
}

/// One list behind another.
inline std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// "683 ms" of "Step time     683 ms (…": what predict says.
inline std::string step_time_in(const std::string& page) {
  const std::size_t at = page.find("Step time") + 9, from = page.find_first_not_of(' ', at);
  return page.substr(from, page.find(" (", from) - from);
}

/// The words of a page, one blank between them, wherever its lines end.
inline std::string words_of(const std::string& page) {
  std::string text;
  for (const std::string& word : split_words(page)) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// An empty folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "foretrain-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

/// A collective whose time follows from one line: 2 · 3/4 · 160 MB over links of 16 GB/s, 15 ms.
inline constexpr const char* ring_of_four = "sync-ring-4";

/// A small training step: data parallel on one machine.
inline constexpr const char* small_step = R"(name: small step
cluster: { node: dgx-a100-80gb }
workload:
  train:
    model: gpt2
    global_batch: 64
    micro_batch: 8
    precision: bf16
    optimizer: adamw
plan:
  sync: { algorithm: ring }
)";

}  // namespace foretrain::test
