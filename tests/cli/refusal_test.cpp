// Whatever the program is given wrong, by whichever command: one line that says where and what to do, exit status 2,
// and nothing on the output. The ways to be wrong inside a scenario have their rows in tests/scenario/bad/*.txt.
#include <sys/stat.h>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

struct Refusal {
  std::vector<std::string> arguments;  ///< FILE stands for a file with the text
  std::string text;
  std::string complaint;  ///< a part of it; begins with "FILE:LINE:COLUMN" where a place in a file is to blame
};

void check(const Refusal& row, const TemporaryFolder& folder, const std::string& name) {
  const std::string file = folder.file(name, row.text);
  std::vector<std::string> arguments = row.arguments;
  for (std::string& argument : arguments) {
    if (argument == "FILE") argument = file;
  }
  std::string complaint = row.complaint;
  if (complaint.starts_with("FILE")) complaint = file + complaint.substr(4);
  INFO(row.arguments.front() << ": " << row.text);
  const FilterResult result = run_program(arguments);
  CHECK(result.status == 2);
  CHECK(result.output.empty());
  CHECK_THAT(result.errors, Catch::StartsWith("foretrain: ") && Catch::Contains(complaint));
}

const std::string good = small_step;

/// The small scenario with a line of its own at the end.
std::string good_with(const std::string& line) { return good + line + "\n"; }

}  // namespace

TEST_CASE("Scenarios that are wrong are refused with their place by every command that reads them") {
  const TemporaryFolder folder;
  for (const char* command : {"predict", "explain", "memory", "plan"}) {
    check({{command, "FILE"}, good_with("colour: red"), "FILE:12:1: colour: unknown key"}, folder, "unknown.yaml");
    check({{command, "FILE"}, "a: [", "FILE:2:1: not valid YAML"}, folder, "open.yaml");
    check({{command, "FILE"}, "name: \xff\n", "FILE:1:7"}, folder, "latin.yaml");
    check({{command, "FILE"}, "", "FILE"}, folder, "empty.yaml");
    check({{command, "FILE", "--set", "cluster.nodes=0"}, good, "cluster.nodes: 0 is out of range"}, folder,
          "small.yaml");
    check({{command, "FILE", "--set", "plan.tensor"}, good, "--set"}, folder, "small.yaml");
    check({{command, folder.file("absent.yaml")}, "", "absent.yaml"}, folder, "small.yaml");
  }
}

TEST_CASE("Tables, calibrations, graphs and results that are wrong are refused with their place") {
  const TemporaryFolder folder;
  const Refusal rows[] = {
      {{"validate", "--cases", "FILE"}, "case,base\na\n", "FILE:2:1: this row has 1 cells"},
      {{"validate", "--cases", "FILE"}, "case,base,case\n", "FILE:1:11: case: this column appears twice"},
      {{"validate", "--cases", "FILE"}, "case,base,measured.step\na,sync-ring-4,1 s\n", "FILE:1:11: measured.step"},
      {{"validate", "--cases", "FILE"}, "case,base,measured.time\na,sync-ring-4,1 GB\n", "FILE:2:15"},
      {{"validate", "--cases", "FILE"},
       "case,base,measured.time\na,sync-ring-4,\"1 s\n",
       "FILE:2:15: this quote is never closed"},
      {{"sweep", "--cases", "FILE", "-o", "FILE"}, "case,base\na,sync-ring-4\n", "this is what the sweep reads"},
      {{"sweep", "FILE", "-o", "FILE"}, good, "this is what the sweep reads"},
      {{"predict", "sync-ring-4", "--calibration", "FILE"}, "{", "FILE"},
      {{"predict", "sync-ring-4", "--calibration", "FILE"}, "{\"constants\": {\"no.such\": 1}}", "FILE:1:1: kind"},
      {{"predict", "sync-ring-4", "--fidelity", "exact"}, "", "there is no exact; write estimate, flows or steps"},
      {{"predict", "sync-ring-5"}, "", "sync-ring-4"},
      {{"predict"}, "", "is required"},
      {{"predict", "sync-ring-4", "no-such-file.yaml"}, "", "no-such-file.yaml"},
      {{"predict", "sync-ring-4", "--set", "workload.collective.size"}, "", "--set"},
      {{"predikt", "x"}, "", "did you mean predict?"},
      {{"sweep", "sync-ring-4", "--vary", "workload.collective.size"}, "", "--vary"},
      {{"sweep", "sync-ring-4", "--vary", "workload.collective.size=1..2x0"}, "", "--vary"},
      {{"sweep", "sync-ring-4", "--jobs", "0"}, "", "--jobs"},
      {{"sweep", "sync-ring-4", "--jobs", "many"}, "", "--jobs"},
      {{"compare", "FILE", "sync-ring-4"}, "workload: 3\n", "FILE:1:1: cluster: this key is missing"},
      {{"import", "FILE"}, "nothing that anybody knows", "there is no command"},
      {{"calibrate", "--from", "FILE", "-o", "out.json"}, "", "FILE"},
      {{"keys", "no.such.key"}, "", "no.such.key"},
      {{"plot", "nothing"}, "", "there is no command"},
  };
  for (const Refusal& row : rows) check(row, folder, "wrong.csv");
}

TEST_CASE("Long and strange arguments are shown shortened and harmless") {
  const std::string beyond(100'000, 'x');
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"predict", beyond},
                                                    {"predict", ring_of_four, "--fidelity", beyond},
                                                    {"predict", "--" + beyond},
                                                    {beyond},
                                                    {"plan", ring_of_four, "--fix", beyond}}) {
    const FilterResult result = run_program(arguments);
    CHECK(result.status == 2);
    CHECK(result.errors.size() < 3000);
  }
  const FilterResult escape = run_program({"predict", "\x1b[31mred\xff"});
  CHECK(escape.status == 2);
  CHECK(escape.errors.find('\x1b') == std::string::npos);
  CHECK(escape.errors.find('\xff') == std::string::npos);
}

TEST_CASE("Whatever names a file, it is a regular file, or - for what is piped in") {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe.yaml");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& name : {std::string("/dev/zero"), pipe}) {
    const std::vector<std::string> commands[] = {
        {"predict", name},
        {"predict", ring_of_four, "--calibration", name},
        {"predict", ring_of_four, "--anchor", name},
        {"predict", ring_of_four, "--set", "cluster.node=" + name},
        {"predict", ring_of_four, "--set", "jobs=[{ scenario: " + name + ", nodes: 0 }]"},
        {"predict", "gpt3-175b-1024-a100", "--set", "workload.train.model={ preset: " + name + " }"},
        {"predict", "gpt3-175b-1024-a100", "--set", "workload.train.model={ hf: " + name + " }"},
        {"predict", "gpt3-175b-1024-a100", "--stack", name},
        {"validate", "--cases", name},
        {"sweep", "--cases", name},
        {"compare", name, ring_of_four},
        {"report", name, "-o", folder.file("page.html")},
        {"plot", "timeline", name, "-o", folder.file("picture.svg")},
        {"plot", "replay", name, "-o", folder.file("picture.svg")},
        {"plot", "map", name, "-o", folder.file("picture.svg")},
        {"learn", name, "-o", folder.file("stack.yaml")},
        {"import", "hf", name},
        {"import", "kineto", name},
        {"import", "nccl-topology", name},
        {"import", "chakra", name},
        {"import", "megatron", name}};
    for (const std::vector<std::string>& command : commands) {
      INFO(command.at(0) << " " << command.at(1) << " " << name);
      check_refused(command, {name == pipe ? "is a pipe" : "is a device"});
    }
  }
}

}  // namespace foretrain::test
