// A sweep that is killed, at any moment: nothing is lost, nothing is there twice, nobody is left running.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "model/base/hash.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

/// Processes whose command line has this word.
int processes_with(const std::string& word) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string command = text_of(entry.path() / "cmdline");
    if (command.find(word) != std::string::npos) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("Killed at five moments, a sweep loses nothing, doubles nothing and leaves nobody behind") {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
  const TemporaryFolder folder;
  const std::vector<std::string> sweep = {"sweep",      ring_of_four,
                                          "--vary",     "workload.collective.size=1 MB..4000 MB",
                                          "--vary",     "workload.collective.ranks=2,4",
                                          "--fidelity", "estimate",
                                          "--jobs",     "2",
                                          "-o"};
  const auto to = [&](const std::string& name) {
    std::vector<std::string> arguments = sweep;
    arguments.push_back(folder.file(name));
    return arguments;
  };
  output_of(to("whole.csv"));
  std::uint64_t state = 7;
  int resumed = 0;
  for (int i = 0; i < 5; ++i) {
    std::vector<std::string> command = to("killed.csv");
    command.insert(command.begin(), FORETRAIN_PROGRAM);
    Process process({.command = command});
    const auto is_there = [&](const char* name) { return std::filesystem::exists(folder.file(name)); };
    for (int wait = 0; wait < 3000 && !is_there("killed.csv.partial") && !is_there("killed.csv"); ++wait)
      usleep(10'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(split_mix(state) % 150));
    process.send(SIGKILL);
    const ProcessEnd end = process.wait();
    // Its workers are identified by the kernel; they need a moment to go.
    for (int wait = 0; wait < 200 && processes_with(folder.file("killed.csv")) > 0; ++wait) usleep(10'000);
    REQUIRE(processes_with(folder.file("killed.csv")) == 0);
    if (end.signal == SIGKILL && std::filesystem::exists(folder.file("killed.csv.partial"))) ++resumed;
  }
  output_of(to("killed.csv"));
  CHECK(resumed > 0);
  CHECK(text_of(folder.file("killed.csv")) == text_of(folder.file("whole.csv")));
  CHECK_FALSE(std::filesystem::exists(folder.file("killed.csv.partial")));
}

}  // namespace foretrain::test
