#include <sstream>

#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

/// Completions that the program offers for the last word.
std::vector<std::string> offered(std::vector<std::string> words) {
  words.insert(words.begin(), {"complete", "--"});
  return split(std::string(trim(output_of(words))), '\n');
}

bool offers(const std::vector<std::string>& words, const std::string& word) {
  const std::vector<std::string> all = offered(words);
  return std::ranges::find(all, word) != all.end();
}

/// Output of a shell that runs these lines; nothing where the shell is not installed.
std::string shell_says(const std::string& shell, const std::string& lines) {
  if (run_filter({"/bin/sh", "-c", "command -v " + shell + " >/dev/null"}, "").status != 0) return "";
  const std::string path = std::filesystem::path(FORETRAIN_PROGRAM).parent_path().string();
  return run_filter({"/bin/sh", "-c", "PATH=" + path + ":$PATH exec " + shell + " -c \"$0\"", lines}, "").output;
}

}  // namespace

TEST_CASE("Subcommands, options, their words and the catalogue's names are offered") {
  CHECK(offers({""}, "predict"));
  CHECK(offers({""}, "sweep"));
  CHECK_FALSE(offers({""}, "complete"));  // for scripts alone
  CHECK(offers({"predict", "--"}, "--fidelity"));
  CHECK_FALSE(offers({"predict", "--"}, "--vary"));
  CHECK(offered({"predict", "x.yaml", "--fidelity", ""}) == std::vector<std::string>{"estimate", "flows", "steps"});
  CHECK(offers({"predict", "--set", "plan.tensor=2", ""}, ring_of_four));  // the option took its value
  CHECK(offers({"predict", "--set", "plan.te"}, "plan.tensor="));
  CHECK(offers({"predict", "--set", "plan.execution="}, "plan.execution=cuda_graph"));
  CHECK(offers({"help", ""}, "plan.tensor"));
  CHECK(offers({"init", "--model", ""}, "llama3-70b"));
  CHECK(offers({"init", "--model", "llama3-70b", "--node", ""}, "dgx-h100"));
  CHECK(offers({"models", "show", ""}, "llama3-70b"));
  CHECK(offers({"hardware", "show", ""}, "dgx-h100"));
  CHECK_FALSE(offers({"frameworks", "show", ""}, ring_of_four));
  CHECK(offers({"plot", ""}, "roofline"));
  CHECK(offers({"plot", "scaling", "-"}, "--output"));
}

TEST_CASE("Shells complete commands and scenarios' names") {
  const std::pair<const char*, const char*> scripts[] = {
      {"bash", R"(source <(foretrain completion bash)
    compopt() { echo "no blank"; }
    for COMP_LINE in 'foretrain expl' 'foretrain predict sync-ring-' 'foretrain predict --set plan.execution=cuda' \
        'foretrain predict --fidelity=est' 'foretrain predict --set plan.ten'; do
      COMP_POINT=${#COMP_LINE}; _foretrain; echo "<${COMPREPLY[*]}>"; done)"},
      {"fish", R"(foretrain completion fish | source
    complete -C 'foretrain expl'; complete -C 'foretrain predict sync-ring-')"},
      {"zsh", R"(autoload -U compinit; compinit -D -u; source <(foretrain completion zsh)
    compadd() { print -r -- ${(P)${@[-1]}} }; _files() { true }
    words=(foretrain expl); CURRENT=2; _foretrain; words=(foretrain predict sync-ring-); CURRENT=3; _foretrain)"}};
  for (const auto& [shell, script] : scripts) {
    const std::string said = shell_says(shell, script);
    if (said.empty()) {
      WARN("skipped: there is no " << shell << " here");
      continue;
    }
    CHECK_THAT(said, Catch::Contains("explain") && Catch::Contains(ring_of_four));
    if (shell != std::string("bash")) continue;
    // bash puts what it is given behind the last "=".
    CHECK_THAT(said, Catch::Contains("<cuda_graph>") && Catch::Contains("<estimate>"));
    CHECK_THAT(said, Catch::Contains("no blank\n<plan.tensor="));
  }
}

TEST_CASE("Without arguments there is a page of help with examples; a slip is answered by the nearest command") {
  const FilterResult nothing = run_program({});
  CHECK(nothing.status == 2);
  CHECK(nothing.errors.find("foretrain predict gpt3-175b-1024-a100") != std::string::npos);
  const FilterResult slip = run_program({"pridict", "x.yaml"});
  CHECK(slip.status == 2);
  CHECK(slip.errors == "foretrain: there is no command \"pridict\"; did you mean predict?\n");
  const FilterResult second = run_program({"plot", "swep", "x.yaml"});
  CHECK(second.status == 2);
  CHECK(second.errors == "foretrain: there is no command \"plot swep\"; did you mean sweep?\n");
  CHECK(run_program({"import", "hugging-face"}).errors.find("\"import hugging-face\"; nccl-topology, nvidia-smi, ") !=
        std::string::npos);
  const FilterResult hostile = run_program({"\x1B[2J"});
  CHECK(hostile.errors.find('\x1B') == std::string::npos);
}

TEST_CASE("No argument of a command has the name of one of its options, which newer CLI11 refuses") {
  std::istringstream pages(read_text_file(std::string(FORETRAIN_SOURCE_DIR) + "/reports/docs/commands.md"));
  std::set<std::string> arguments;
  std::string line, command;
  bool positionals = false;
  int seen = 0;
  while (std::getline(pages, line)) {
    if (line.starts_with("## ")) {
      command = line;
      arguments.clear();
    }
    if (!line.starts_with("  ")) positionals = line == "Positionals:";
    if (line.size() < 3 || !line.starts_with("  ") || line[2] == ' ') continue;
    const std::string word = line.substr(2, line.find(' ', 2) - 2);
    if (positionals) {
      arguments.insert("--" + word);
      ++seen;
    }
    for (const std::string& name : split(word, ',')) {
      INFO(command << ": " << name);
      CHECK((positionals || !arguments.contains(name)));
    }
  }
  CHECK(seen > 10);
}

}  // namespace foretrain::test
