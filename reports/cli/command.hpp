// The subcommands: each adds itself to the command line, and runs when the line names it.
#pragma once

#include <CLI/CLI.hpp>
#include <array>

namespace foretrain {

/// What the program says to the shell.
enum ExitStatus : int {
  success = 0,
  prediction_failed = 1,  ///< or a validation missed its bar
  bad_input = 2           ///< or wrong usage
};

// Each in a file of its own. `status` is what the program will return; it must outlive the parsing.
void add_predict(CLI::App& app, ExitStatus& status);
void add_sweep(CLI::App& app, ExitStatus& status);
void add_validate(CLI::App& app, ExitStatus& status);
void add_fit(CLI::App& app, ExitStatus& status);
void add_replay(CLI::App& app, ExitStatus& status);
void add_calibrate(CLI::App& app, ExitStatus& status);
void add_plot(CLI::App& app, ExitStatus& status);
void add_memory(CLI::App& app, ExitStatus& status);
void add_lists(CLI::App& app, ExitStatus& status);

/// The table of subcommands, in the order in which the help names them.
inline constexpr std::array add_commands = {add_predict,   add_sweep,  add_validate, add_fit,  add_replay,
                                            add_calibrate, add_memory, add_plot,     add_lists};

}  // namespace foretrain
