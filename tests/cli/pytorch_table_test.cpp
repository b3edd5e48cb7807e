// validate/pytorch/train_steps.py writes a table of cases: its own logic, without PyTorch and without a GPU.
#include <algorithm>
#include <sstream>

#include "model/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

const std::string script = std::string(FORETRAIN_SOURCE_DIR) + "/validate/pytorch/train_steps.py";

FilterResult run_script(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"python3", script};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_filter(command, "");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool no_python() {
  if (std::system("command -v python3 >/dev/null 2>&1") == 0) return false;
  WARN("no python3 here: the table of PyTorch's steps is not tested");
  return true;
}

/// A record as the script leaves it. The numbers are made up; the test is about names, units and the table's form.
std::string record(const std::string& name, const std::string& fields, const std::string& status) {
  return R"({"name": ")" + name + R"(", "case": {)" + fields + R"(}, "status": ")" + status +
         R"(", "values": [0.25, 0.5, 0.125], "device_used": 5000000000, "pytorch": "2.0", "cuda": "13.0", )"
         R"("gpu": "a GPU", "date": "2026-01-01"})"
         "\n";
}

}  // namespace

TEST_CASE("Every designed step has a name of its own, and the quick set is small") {
  if (no_python()) return;
  const FilterResult all = run_script({"--list"});
  const FilterResult quick = run_script({"--list", "--quick"});
  REQUIRE(all.status == 0);
  const std::vector<std::string> names = lines_of(all.output);
  std::vector<std::string> distinct = names;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  CHECK(distinct.size() == names.size());
  CHECK(names.size() >= 40);
  CHECK(lines_of(quick.output).size() <= 8);
  for (const char* model :
       {"lenet", "resnet-18-d2l", "resnet-50", "bert-base", "gpt2-", "gpt2-medium", "gpt2-large", "gpt3-1.3b"}) {
    CHECK_THAT(all.output, Catch::Contains(model));
  }
}

TEST_CASE("Before Ampere every step in half precision is one of fp16") {
  if (no_python()) return;
  const std::string ask = "import runpy; m = runpy.run_path('" + script +
                          "'); print('\\n'.join(m['name_of'](c) for c in m['designed_cases'](False, 'fp16')))";
  const FilterResult names = run_filter({"python3", "-c", ask}, "");
  CHECK(names.status == 0);
  CHECK_THAT(names.output, Catch::Contains("gpt2-b4-s512-fp16-compiled") && !Catch::Contains("bf16"));
  CHECK(lines_of(names.output).size() == lines_of(run_script({"--list"}).output).size());
}

TEST_CASE("What was measured becomes a table that validate takes, medians and bytes as they are") {
  if (no_python()) return;
  const TemporaryFolder folder;
  write_file(folder.file("pytorch.jsonl"),
             record("lenet-b256-fp32-eager",
                    R"("model": "lenet", "batch": 256, "sequence": null, "precision": "fp32", "execution": "eager")",
                    "measured") +
                 record("gpt2-b4-s512-bf16-compiled",
                        R"("model": "gpt2", "batch": 4, "sequence": 512, "precision": "bf16", "execution": "compiled")",
                        "measured") +
                 record("gpt2-b8-s512-bf16-eager", R"("model": "gpt2")", "failed") + R"({"name": "cut o)");
  const FilterResult table = run_script({"-o", folder.file(""), "--table", "--node", "h200-x1"});
  REQUIRE(table.status == 0);
  const std::string text = read_text_file(folder.file("cases_pytorch.csv"));
  CHECK_THAT(text, Catch::Contains("0.25 s,5000.0 MB"));  // the median of three, decimal megabytes
  CHECK(lines_of(text).size() == 3);                      // a head and two cases: what failed is left out
  const FilterResult validated = run_program({"validate", "--cases", folder.file("cases_pytorch.csv"), "--json"});
  CHECK(validated.status == 0);
  CHECK_THAT(validated.output, Catch::Contains("pytorch-gpt2-b4-s512-bf16-compiled"));
  CHECK_THAT(validated.output, Catch::Contains(R"("failed": [])"));
}

TEST_CASE("Without a measured case, with an unknown model or without PyTorch the script says so") {
  if (no_python()) return;
  const TemporaryFolder folder;
  CHECK(run_script({"-o", folder.file(""), "--table"}).status == 1);
  const FilterResult unknown = run_script({"-o", folder.file(""), "--only", "gtp2"});
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.errors, Catch::Contains("there is no model gtp2"));
  CHECK(run_script({}).status == 2);
}

}  // namespace foretrain::test
