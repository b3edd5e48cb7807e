#include "reports/cli/manual_page.hpp"

#include <fmt/format.h>

#include "reports/cli/completion.hpp"

namespace foretrain {

namespace {

/// A text between macros: what roff would take for an escape or a macro is made plain.
std::string roff(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c == '\\') {
      plain += "\\e";
    } else if (c == '-') {
      plain += "\\-";
    } else if ((c == '.' || c == '\'') && (plain.empty() || plain.back() == '\n')) {
      plain += std::string("\\&") + c;
    } else {
      plain += c;
    }
  }
  return plain;
}

std::string entry(const CLI::Option& option) {
  const std::string type = option.get_items_expected_max() > 0 ? " " + option.get_type_name() : "";
  const std::string name = option.get_positional() ? option.get_name(true) : option.get_name(false, true) + type;
  return fmt::format(".TP\n.B {}\n{}\n", roff(name), roff(option.get_description()));
}

std::string section(const CLI::App& command, const std::string& name) {
  std::string text = fmt::format(".SS {}\n{}\n", roff(name), roff(command.get_description()));
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_name() != "--help") text += entry(*option);
  }
  for (const CLI::App* deeper : visible_subcommands(command)) text += section(*deeper, name + " " + deeper->get_name());
  return text;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string text = fmt::format(
      R"(.TH FORETRAIN 1 "" "foretrain {0}" "User commands"
.SH NAME
foretrain \- how long a training step takes, and why
.SH SYNOPSIS
.B foretrain
.I COMMAND
[\fIOPTIONS\fR] ...
.SH DESCRIPTION
Predicts the step of a distributed training job from a scenario: cluster, model and plan in a YAML file. Results go to
standard output, progress and warnings to standard error.
.SH COMMANDS
)",
      FORETRAIN_VERSION);
  for (const CLI::App* command : visible_subcommands(app)) text += section(*command, command->get_name());
  text += R"(.SH EXIT STATUS
.TP
.B 0
success
.TP
.B 1
a prediction or a validation bar failed
.TP
.B 2
bad input or usage; the message names file, line and column, what is wrong and what would be right
.SH ENVIRONMENT
.TP
.B FORETRAIN_SCENARIOS
the folder of the catalogue, where it is not found near the program
.TP
.B FORETRAIN_HOST_PROGRAMS, FORETRAIN_GPU_PROGRAMS
folders of the programs that replays start
)";
  return text;
}

}  // namespace foretrain
