// Real processes that meet on one machine, and over MPI where it is installed.
#include "validate/cuda/collective/world.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;
using namespace foretrain::gpu;

namespace {

/// What a shell prints, line by line in order of the alphabet.
std::vector<std::string> lines_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string all;
  char text[4096];
  while (std::fgets(text, sizeof(text), pipe) != nullptr) all += text;
  pclose(pipe);
  std::vector<std::string> lines;
  std::istringstream in(all);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

Launched of_two(int rank) { return {.by = "test", .rank = rank, .size = 2, .local_rank = {}}; }

}  // namespace

TEST_CASE("processes of one machine meet and agree", "[collective][world]") {
  // Rank 0 decided 42; texts come in order of ranks whatever their lengths; the greatest of 0, 1.5, 3 and 4.5 is the
  // last one's.
  const std::vector<std::string> told = {"rank 0 of 1: 42 [r] 0 ", "42 [r][rx] 1.5 files",
                                         "42 [r][rx][rxx][rxxx] 4.5 files"};
  CHECK(lines_of(FORETRAIN_WORLD_PROBE) == std::vector{told[0]});
  for (const int size : {2, 4}) {
    const TemporaryFolder folder;
    std::string command;
    std::vector<std::string> expected;
    for (int rank = size - 1; rank >= 0; --rank) {
      command += "FORETRAIN_RANK=" + std::to_string(rank) + " FORETRAIN_SIZE=" + std::to_string(size) +
                 " FORETRAIN_MEETING=" + folder.path().string() + " " FORETRAIN_WORLD_PROBE " & ";
      const std::string who = "rank " + std::to_string(rank) + " of " + std::to_string(size);
      expected.insert(expected.begin(), who + ": " + told[static_cast<std::size_t>(size / 2)]);
    }
    CHECK(lines_of(command + "wait") == expected);
    CHECK(folder.entries() == size);  // what each said last; all before that is gone
  }
}

TEST_CASE("nobody waits for ever for a process that is gone or never came", "[collective][world]") {
  const TemporaryFolder folder;
  const auto rank_0 = make_file_world(of_two(0), folder.path().string(), 0.3);
  CHECK_THROWS_WITH(rank_0->gather("here"), Catch::Contains("the process of rank 1 did not answer within 0 s"));
  CHECK(make_file_world(of_two(1), folder.path().string(), 0.3)->gather("too") ==
        std::vector<std::string>{"here", "too"});
  const auto nowhere = make_file_world(of_two(1), (folder.path() / "none").string(), 0.3);
  CHECK_THROWS_WITH(nowhere->gather("here"), Catch::Contains("cannot write"));
}

TEST_CASE("one process needs nobody, several need a way to meet", "[collective][world]") {
  const Environment nothing = [](const std::string&) { return std::nullopt; };
  const auto alone = make_world(Launched{}, nothing);
  CHECK(alone->size() == 1);
  CHECK(alone->leads());
  CHECK(alone->maximum(2.5) == 2.5);
  CHECK(alone->gather("text") == std::vector<std::string>{"text"});
#ifndef FORETRAIN_HAS_MPI
  CHECK_THROWS_WITH(make_world({.by = "Open MPI", .rank = 0, .size = 4, .local_rank = {}}, nothing),
                    Catch::Contains("built without MPI"));
#endif
}

TEST_CASE("a rank's place on its machine follows from all ranks' machines", "[collective][world]") {
  const std::vector<std::string> machines{"a", "b", "a", "b", "b"};
  CHECK(local_rank_of(0, machines) == 0);
  CHECK(local_rank_of(2, machines) == 1);  // the second on a
  CHECK(local_rank_of(4, machines) == 2);  // the third on b
}

#ifdef FORETRAIN_HAS_MPI
TEST_CASE("processes meet over MPI and agree", "[collective][world]") {
  // By way of a shell, as the suites' processes are started by another process of the program.
  const auto lines = lines_of(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 3 sh -c "
      "'true; " FORETRAIN_WORLD_PROBE "; true' 2>/dev/null");
  CHECK(lines == std::vector<std::string>{"rank 0 of 3: 42 [r][rx][rxx] 3 MPI", "rank 1 of 3: 42 [r][rx][rxx] 3 MPI",
                                          "rank 2 of 3: 42 [r][rx][rxx] 3 MPI"});
}
#endif
