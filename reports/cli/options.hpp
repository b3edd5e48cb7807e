// Options that several subcommands share, and their way to stdout and stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/words.hpp"
#include "model/result.hpp"
#include "model/scenario/load/cases.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/terminal.hpp"
#include "reports/cli/workers.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

/// A subcommand with options of its own; `run` carries it out once they are read.
template <typename Options>
struct Subcommand {
  CLI::App& command;
  Options& options;
};
template <typename Options>
Subcommand<Options> add_command(CLI::App& parent, const std::string& name, const std::string& what, ExitStatus& status,
                                ExitStatus (*run)(const Options&)) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand(name, what);
  command->callback([options, run, &status] { status = run(*options); });
  return {*command, *options};
}

/// An option whose value, or values, help calls by their type: "FILE.csv".
template <typename Value>
CLI::Option* add_text(CLI::App& command, const std::string& name, Value& value, const std::string& type,
                      const std::string& what) {
  return command.add_option(name, value, what)->type_name(type);
}
/// An option whose value is one of some words; `take` is given its place among them.
CLI::Option* add_choice(CLI::App& command, const std::string& name, const std::vector<std::string>& words,
                        const std::function<void(std::size_t)>& take, const std::string& what);
/// The same for the words of an enumeration.
template <typename Enum, typename Target>
CLI::Option* add_word(CLI::App& command, const std::string& name, Target& value, const std::string& what) {
  const auto take = [&value](std::size_t place) { value = static_cast<Enum>(place); };
  return add_choice(command, name, {names_of<Enum>.begin(), names_of<Enum>.end()}, take, what);
}
template <typename Number>
CLI::Option* add_number(CLI::App& command, const std::string& name, Number& value, int least, int most,
                        const std::string& what) {
  return command.add_option(name, value, what)->type_name("N")->check(CLI::Range(least, most).description(""));
}
/// An option that takes one value each time it is given.
CLI::Option* add_repeatable(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                            const std::string& what, const std::string& type);
/// --gpus N,N,…
void add_gpu_numbers(CLI::App& command, std::vector<int>& gpus, const std::string& what);
/// --fidelity; flows where it is not given.
void add_fidelity(CLI::App& command, Fidelity& fidelity);
/// Throws UsageError for a word that is none.
Fidelity fidelity_named(const std::string& word);
/// --what-ifs: the fidelity of what a scenario is compared with.
void add_what_if_fidelity(CLI::App& command, std::optional<Fidelity>& fidelity, const std::string& what);
/// --set KEY=VALUE, any number of times, and --stack.
void add_overrides(CLI::App& command, std::vector<std::string>& overrides);
/// Options that set a key: --stack STACK.yaml plan.framework, --headroom SHARE plan.headroom, --calibration FILE
/// calibration.
void add_stack(CLI::App& command, std::vector<std::string>& overrides);
void add_headroom(CLI::App& command, std::vector<std::string>& overrides);
void add_calibration(CLI::App& command, std::vector<std::string>& overrides);
/// "plan.framework=…", the file's path whole.
std::string stack_override(const std::string& stack);
/// The rows, each with these overrides as well.
std::vector<Case> with_overrides(std::vector<Case> rows, const std::vector<std::string>& overrides);
/// --vary KEY=VALUES, any number of times; `what` says what the combinations become.
CLI::Option* add_variations(CLI::App& command, std::vector<std::string>& variations, const std::string& what);
/// -o, where a picture goes; anything but .svg, .png and .pdf is refused.
CLI::Option* add_picture(CLI::App& command, const std::string& name, std::string& path, const std::string& what);
void write_picture(const std::string& path, const Figure& figure);
/// "" is stdout.
void write_or_print(const std::string& path, const std::string& text);

/// The same for a file that is not there yet. Throws UsageError where it is.
void write_new_file(const std::string& path, const std::string& text);
/// --jobs N; one worker per processor where it is not given.
void add_jobs(CLI::App& command, int& jobs);

/// Writes to stdout what programs read; people get print_page() (terminal.hpp).
void print(std::string_view text);
/// Sends out what print() was given. Throws UsageError when it could not be written (a full disk).
void finish_output();
/// A line on stderr for the user's attention.
void warn(std::string_view text);

/// "12 of 380 predictions, 40 a second, 9.20 s left" on stderr while they come in: renewed on a terminal, else a line a
/// minute.
class Progress {
 public:
  explicit Progress(std::size_t total, std::string what = "predictions");
  void advance() { advance_to(done_ + 1, total_); }
  /// So many of so many are done.
  void advance_to(std::size_t done, std::size_t total);
  [[nodiscard]] double elapsed_seconds() const;

 private:
  std::size_t total_;
  std::string what_;
  std::size_t done_ = 0;
  StatusLine line_;
  std::chrono::steady_clock::time_point started_, told_;
};

/// The document's scenario; where it says `auto`, with the best plan that a search finds
/// (model/planning/plan_search.hpp).
Scenario planned_scenario(YamlNode document, const std::string& name, Fidelity fidelity);

/// The same of a file.
Scenario planned_file(const std::string& file, const std::vector<std::string>& overrides, Fidelity fidelity);

/// The overrides, and those that say what the file leaves to `auto`: for commands that read it several times.
std::vector<std::string> planned_overrides(const std::string& file, std::vector<std::string> overrides,
                                           Fidelity fidelity);

/// The prediction of a table's row, without its provenance: tables and pictures have no place for a hundred constants
/// per row, and they would be nine tenths of what workers send. Throws as scenario_of and predict do.
Result predict_row(const Case& row, Fidelity fidelity);

std::vector<Outcome> predict_with_progress(std::size_t count, int jobs, const Predictor& predictor);
/// predict_row of each.
std::vector<Outcome> predict_cases(const std::vector<Case>& cases, Fidelity fidelity, int jobs);
/// The results. Where one is missing, why is reported, and `status` becomes what the program ends with.
std::vector<Result> results_of(std::vector<Outcome> outcomes, ExitStatus& status);

}  // namespace foretrain
