// Real processes that meet on one machine, and over MPI where it is installed.
#include "validate/cuda/collective/world.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "tests/catch.hpp"

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

/// Of this test alone.
std::string fresh_meeting() {
  static int count = 0;
  return "foretrain-test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

Launched of_two(int rank) { return {.by = "test", .rank = rank, .size = 2, .local_rank = {}}; }

/// Starts one process per pair of rank and size at the same meeting point.
std::string together(const std::vector<std::pair<int, int>>& processes, const std::string& arguments = "") {
  const std::string meeting = fresh_meeting();
  std::string command;
  for (const auto& [rank, size] : processes) {
    command += "FORETRAIN_RANK=" + std::to_string(rank) + " FORETRAIN_SIZE=" + std::to_string(size) +
               " FORETRAIN_MEETING=" + meeting + " " FORETRAIN_WORLD_PROBE " " + arguments + " & ";
  }
  return command + "wait";
}

}  // namespace

TEST_CASE("processes of one machine meet and agree", "[collective][world]") {
  const auto lines = lines_of(together({{2, 3}, {0, 3}, {1, 3}}));
  // Rank 0 decided 42; texts come in order of ranks whatever their lengths; the greatest of 0, 1.5 and 3 is 3.
  CHECK(lines == std::vector<std::string>{"rank 0 of 3: 42 [r][rx][rxx] 3 local",
                                          "rank 1 of 3: 42 [r][rx][rxx] 3 local",
                                          "rank 2 of 3: 42 [r][rx][rxx] 3 local"});
}

TEST_CASE("processes that disagree about who they are say so", "[collective][world]") {
  const auto sizes = lines_of(together({{0, 2}, {1, 3}}));
  CHECK(std::any_of(sizes.begin(), sizes.end(), [](const std::string& line) {
    return line == "error: rank 0 was launched as one of 2 processes, and rank 1 as one of 3";
  }));
  const auto ranks = lines_of(together({{0, 3}, {1, 3}, {1, 3}}));
  CHECK(std::any_of(ranks.begin(), ranks.end(),
                    [](const std::string& line) { return line == "error: two processes say that they have rank 1"; }));
}

TEST_CASE("a process that leaves is missed by all others, which do not hang", "[collective][world]") {
  const auto lines = lines_of(together({{0, 3}, {1, 3}, {2, 3}}, "--leave"));
  REQUIRE(lines.size() == 2);  // rank 1 left without a word
  for (const std::string& line : lines) CHECK_THAT(line, Catch::StartsWith("error: ") && Catch::Contains("is gone"));
}

TEST_CASE("nobody waits for ever for processes that do not come", "[collective][world]") {
  const std::string meeting = fresh_meeting();
  CHECK_THROWS_WITH(make_local_world(of_two(0), meeting, 0.3), Catch::Contains("1 of 2 processes did not come"));
  CHECK_THROWS_WITH(make_local_world(of_two(1), meeting, 0.3), Catch::Contains("rank 0 does not listen at " + meeting));
  CHECK_THROWS_WITH(make_local_world(of_two(1), std::string(200, 'x'), 0.3), Catch::Contains("too long"));
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
