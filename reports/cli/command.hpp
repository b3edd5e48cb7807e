// The subcommands: each adds itself to the command line, and runs when the line names it.
#pragma once

#include <CLI/CLI.hpp>

namespace foretrain {

/// What the program says to the shell.
enum ExitStatus : int {
  success = 0,
  prediction_failed = 1,  ///< or a validation missed its bar
  bad_input = 2,          ///< or wrong usage
  internal_error = 70     ///< a mistake of this program's own (EX_SOFTWARE of sysexits.h)
};

// `status` is what the program will return; it must outlive the parsing.
#define COMMAND(name) void add_##name(CLI::App& app, ExitStatus& status);
#include "reports/cli/commands.def"

}  // namespace foretrain
