// `foretrain completion SHELL` prints what a shell has to read; that asks `foretrain complete` at each press of the
// key.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <map>
#include <string>

#include "reports/cli/command.hpp"
#include "reports/cli/completion.hpp"
#include "reports/cli/options.hpp"

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

/// The page of section 1 of the manual, in the macros of man(7).
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
.B FORETRAIN_GPU_PROGRAMS
the folder of foretrain-gpu, where it is not beside the program
)";
  return text;
}

constexpr const char* bash = R"sh(# foretrain's completion for bash
_foretrain() {
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "$(foretrain complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" \
    -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _foretrain foretrain
)sh";

constexpr const char* zsh = R"sh(#compdef foretrain
_foretrain() {
  local -a words_known
  words_known=(${(f)"$(foretrain complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -a words_known
  _files
}
if [[ ${funcstack[1]} == _foretrain ]]; then _foretrain "$@"; else compdef _foretrain foretrain; fi
)sh";

constexpr const char* fish = R"sh(# foretrain's completion for fish
function __foretrain_complete
  set -l words (commandline -opc)
  foretrain complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c foretrain -a '(__foretrain_complete)'
)sh";

}  // namespace

void add_completion(CLI::App& app, ExitStatus&) {
  CLI::App* command = app.add_subcommand("completion", "completion for a shell: `source <(foretrain completion bash)`");
  command->require_subcommand(1);
  for (const auto& [shell, script] : std::map<std::string, const char*>{{"bash", bash}, {"zsh", zsh}, {"fish", fish}}) {
    command->add_subcommand(shell, "for " + shell)->callback([script = script] { print(script); });
  }
  // For whoever packs the program; people need not see it.
  app.add_subcommand("manual", "")->group("")->callback([&app] { print(manual_page(app)); });
}

}  // namespace foretrain
