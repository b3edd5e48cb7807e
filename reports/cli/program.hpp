// The program: its main() does nothing else.
#pragma once

namespace foretrain {

/// Parses the command line and runs the subcommand that it names. Returns what the program says to the shell.
int run_program(int argc, char** argv);

}  // namespace foretrain
