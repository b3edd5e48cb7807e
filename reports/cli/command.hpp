// The program, and its subcommands: each adds itself to the command line, and runs when the line names it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace foretrain {

/// Exit status of the program.
enum ExitStatus : int {
  success = 0,
  prediction_failed = 1,  ///< or a validation missed its bar
  bad_input = 2,          ///< or wrong usage
  internal_error = 70     ///< a mistake of this program's own (EX_SOFTWARE of sysexits.h)
};

// `status` is what the program will return; it must outlive the parsing.
#define COMMAND(name) void add_##name(CLI::App& app, ExitStatus& status);
#include "reports/cli/commands.def"

/// The subcommands that help lists.
std::vector<const CLI::App*> visible_subcommands(const CLI::App& app);

/// Completions of the last of `words`, which are those behind the program's name; the last may be empty.
/// Subcommands, options, an option's words, names of the catalogue; all of them, whatever the last word begins with.
std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words);

/// Parses the command line and runs the subcommand that it names. Returns what the program says to the shell.
int run_program(int argc, char** argv);

}  // namespace foretrain
