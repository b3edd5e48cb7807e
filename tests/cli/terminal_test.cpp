// The program at a terminal: a pseudo-terminal whose size, locale and colours the test chooses.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "model/base/text.hpp"
#include "reports/print/table.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

struct Session {
  std::string screen;
  int status = 0;  ///< as a shell tells it: 128 and the signal where one ended the program
  double seconds = 0.0;
};

/// Runs the program on a terminal of so many columns, with these variables and no others; presses Ctrl-C once the
/// screen shows `interrupt_at`.
Session at_terminal(const std::vector<std::string>& arguments, unsigned short columns,
                    const std::vector<std::string>& variables, const std::string& interrupt_at = "") {
  winsize size{};
  size.ws_row = 50;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t process = forkpty(&terminal, nullptr, nullptr, &size);
  if (process == 0) {
    clearenv();
    setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
    setenv("PATH", "/usr/bin:/bin", 1);
    for (const std::string& variable : variables) {
      const std::size_t equals = variable.find('=');
      setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    }
    std::vector<std::string> words = {FORETRAIN_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv(pointers.front(), pointers.data());
    _exit(127);
  }
  Session session;
  std::chrono::steady_clock::time_point pressed;
  bool waiting = !interrupt_at.empty();
  char buffer[4096];
  for (ssize_t count; (count = read(terminal, buffer, sizeof buffer)) > 0;) {
    session.screen.append(buffer, static_cast<std::size_t>(count));
    if (!waiting || session.screen.find(interrupt_at) == std::string::npos) continue;
    waiting = false;
    pressed = std::chrono::steady_clock::now();
    CHECK(write(terminal, "\x03", 1) == 1);
  }
  int status = 0;
  waitpid(process, &status, 0);
  close(terminal);
  session.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - pressed).count();
  session.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  std::erase(session.screen, '\r');
  return session;
}

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (const std::string& line : split(text, '\n')) most = std::max(most, display_width(line));
  return most;
}

bool is_ascii(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

const std::string step = "gpt2-xl-dgx-a100";

/// A bare chroot has no pseudo-terminals: nothing can be tried there.
bool has_terminals() {
  int terminal = -1, program = -1;
  if (openpty(&terminal, &program, nullptr, nullptr, nullptr) != 0) {
    WARN("this machine has no pseudo-terminals: not tried");
    return false;
  }
  close(terminal);
  close(program);
  return true;
}

}  // namespace

TEST_CASE("Pages fit the window; those that go into files are 80 columns wide") {
  if (!has_terminals()) return;
  for (const std::vector<std::string>& page : {std::vector<std::string>{"predict", step, "--fidelity", "estimate"},
                                               {"scenarios", "list"},
                                               {"help", "bucket"},
                                               {"keys", "plan"},
                                               {"predict", "--help"}}) {
    INFO(page.front());
    CHECK(widest(run_program(page).output) <= 80);
    CHECK(widest(at_terminal(page, 64, {"LANG=C.UTF-8", "NO_COLOR=1"}).screen) <= 64);
  }
  const std::vector<std::string> list = {"scenarios", "list"};
  CHECK(widest(at_terminal(list, 120, {"LANG=C.UTF-8", "NO_COLOR=1"}).screen) > 100);
  CHECK(widest(at_terminal(list, 120, {"LANG=C.UTF-8", "NO_COLOR=1", "COLUMNS=72"}).screen) <= 72);
}

TEST_CASE("There are colours on a terminal, and never where NO_COLOR or a dumb terminal says so") {
  if (!has_terminals()) return;
  const std::vector<std::string> page = {"predict", step, "--fidelity", "estimate"};
  const auto coloured = [](const std::string& text) { return text.find("\033[") != std::string::npos; };
  CHECK(coloured(at_terminal(page, 80, {"LANG=C.UTF-8", "TERM=xterm"}).screen));
  CHECK_FALSE(coloured(at_terminal(page, 80, {"LANG=C.UTF-8", "TERM=xterm", "NO_COLOR=1"}).screen));
  CHECK_FALSE(coloured(at_terminal(page, 80, {"LANG=C.UTF-8", "TERM=dumb"}).screen));
  CHECK_FALSE(coloured(run_program(page).output));
  // Uncoloured, the terminal of 80 columns shows what a file gets.
  CHECK(at_terminal(page, 80, {"LANG=C.UTF-8", "NO_COLOR=1"}).screen == run_program(page).output);
  CHECK_FALSE(coloured(at_terminal({"predict", step, "--json"}, 80, {"LANG=C.UTF-8", "TERM=xterm"}).screen));
}

TEST_CASE("A locale without UTF-8 gets ASCII") {
  if (!has_terminals()) return;
  const std::vector<std::string> page = {"predict", step, "--fidelity", "estimate", "--verbose"};
  for (const char* locale : {"LC_ALL=C", "LANG=de_DE.ISO-8859-1"}) {
    const std::string screen = at_terminal(page, 80, {locale, "NO_COLOR=1"}).screen;
    CHECK(is_ascii(screen));
    CHECK_THAT(screen, Catch::Contains("####") && Catch::Contains("----"));
  }
  CHECK(is_ascii(at_terminal(page, 80, {"NO_COLOR=1"}).screen));
  CHECK_FALSE(is_ascii(at_terminal(page, 80, {"LC_CTYPE=en_US.utf8", "NO_COLOR=1"}).screen));
}

TEST_CASE("Progress tells rate and time left; Ctrl-C ends it at once, with nothing torn") {
  if (!has_terminals()) return;
  const TemporaryFolder folder;
  const std::string table = folder.file("rows.csv");
  const Session session =
      at_terminal({"sweep", step, "--vary", "workload.train.global_batch=128..1280000+128", "-o", table, "--jobs", "1"},
                  80, {"LANG=C.UTF-8"}, " left");
  CHECK(session.status == 130);
  CHECK(session.seconds < 2.0);
  CHECK_THAT(session.screen, Catch::Contains(" of 10000 predictions, ") && Catch::Contains(" a second, "));
  CHECK_THAT(session.screen, Catch::EndsWith("\033[K"));  // the line is gone
  CHECK_FALSE(std::filesystem::exists(table));            // rows wait beside it for the next run
  CHECK(std::filesystem::exists(table + ".partial"));
}

TEST_CASE("Predictions are written as a table, and to a file in the format of its name") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", small_step);
  const std::vector<std::string> estimate = {"predict", file, file, "--fidelity", "estimate"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), estimate.begin(), estimate.end());
    return run_program(more);
  };
  const FilterResult csv = with({"--csv"});
  REQUIRE(csv.status == 0);
  const std::vector<std::string> lines = split(std::string(trim(csv.output)), '\n');
  REQUIRE(lines.size() == 3);
  CHECK_THAT(lines[0], Catch::StartsWith("scenario,predicted.step_time_s,"));
  CHECK_THAT(lines[1], Catch::StartsWith("small step,0."));
  CHECK(with({"-o", folder.file("out.csv")}).output.empty());
  CHECK(text_of(folder.file("out.csv")) == csv.output);
  CHECK(with({"-o", folder.file("out.json")}).status == 0);
  CHECK(text_of(folder.file("out.json")) == with({"--json"}).output);
  CHECK(with({"-o", folder.file("out.txt")}).status == 0);
  CHECK(text_of(folder.file("out.txt")) == with({}).output);
  CHECK(with({"--csv", "--json"}).status == 2);
}

}  // namespace foretrain::test
