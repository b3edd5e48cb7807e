// `foretrain replay` before anything is run: these need neither root nor a network.
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

TEST_CASE("A replay needs something to run, and says what would be right") {
  const TemporaryFolder folder;
  CHECK(run_program({"replay"}).status == 2);
  CHECK(run_program({"replay", "replay-ring-4", "--executor", "nccl"}).status == 2);
  CHECK(run_program({"replay", "replay-ring-4", "--table", folder.file("out.csv")}).status == 2);
  CHECK(run_program({"replay", "replay-ring-4", "-o", folder.file("other.json", "{}")}).status == 2);
  // Four GPUs on one machine are no hosts.
  const FilterResult one_machine = run_program({"replay", ring_of_four});
  CHECK(one_machine.status == 2);
  CHECK_THAT(one_machine.errors, Catch::Contains("one rank per host"));
  const std::string cases = folder.file("cases.csv", "case,base,replay.keys\na,replay-hosts,many\n");
  const FilterResult keys = run_program({"replay", "--cases", cases});
  CHECK(keys.status == 2);
  CHECK_THAT(keys.errors, Catch::Contains("replay.keys"));
}

TEST_CASE("A picture of replays needs measurements of hosts") {
  const TemporaryFolder folder;
  const std::string picture = folder.file("out.svg");
  CHECK(run_program({"plot", "replay", folder.file("missing.json"), "-o", picture}).status == 2);
  const std::string empty = folder.file("no.json", R"({"kind": "something else"})");
  CHECK_THAT(run_program({"plot", "replay", empty, "-o", picture}).errors, Catch::Contains("foretrain replay -o"));
}

TEST_CASE("The scenarios of replays are predicted like all others") {
  // 2 x 3/4 x 16 MB over 1 Gbit/s x 1448/1514: 200.7 ms, and six times 25 us.
  const FilterResult result = run_program({"predict", "replay-ring-4"});
  CHECK(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("201 ms"));
}

}  // namespace foretrain::test
