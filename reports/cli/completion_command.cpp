// `foretrain completion SHELL` prints what a shell has to read; that asks `foretrain complete` at each press of the
// key.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <string>

#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/completion.hpp"
#include "reports/cli/options.hpp"

namespace foretrain {

namespace {

/// "--name" of each name, or "-n".
std::vector<std::string> written(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// "plan.tensor=" of every key, or, behind a key, what it may be: "plan.execution=eager".
std::vector<std::string> settings(std::string_view begun) {
  std::vector<std::string> found;
  const std::size_t equals = begun.find('=');
  if (equals == std::string_view::npos) {
    for (const std::string& key : keys::dotted_keys()) found.push_back(key + "=");
  } else {
    const std::string key(begun.substr(0, equals));
    for (const std::string& word : keys::words_of(key)) found.push_back(key + "=" + word);
  }
  return found;
}

/// What an option's value may be, where that is known: a name of the catalogue, a setting, or one of the words that its
/// description lists, "estimate|flows|steps".
std::vector<std::string> values_of(const CLI::Option& option, std::string_view begun) {
  if (option.check_lname("model")) return catalogue_names(list_models());
  if (option.check_lname("node")) return catalogue_names(list_hardware(), "node");
  const std::string type = option.get_type_name();
  if (type.starts_with("KEY=")) return settings(begun);
  return type.find('|') == std::string::npos ? std::vector<std::string>() : split(type, '|');
}

/// What the argument of a command may be, files aside.
std::vector<std::string> arguments_of(const CLI::App& command) {
  const std::string& name = command.get_name();
  const std::string above = command.get_parent() == nullptr ? "" : command.get_parent()->get_name();
  if (name == "help" || name == "keys") return keys::dotted_keys();
  if (above == "models") return catalogue_names(list_models());
  if (above == "hardware") return catalogue_names(list_hardware());
  if (above == "trainers") return catalogue_names(list_trainers());
  return catalogue_names(list_scenarios());
}

}  // namespace

std::vector<const CLI::App*> visible_subcommands(const CLI::App& app) {
  std::vector<const CLI::App*> commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::erase_if(commands, [](const CLI::App* command) { return command->get_group().empty(); });
  return commands;
}

std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  const CLI::Option* waiting = nullptr;  // an option whose value comes next
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (waiting != nullptr) {
      waiting = nullptr;
    } else if (words[i].starts_with("-")) {
      const CLI::Option* option = command->get_option_no_throw(words[i]);
      if (option != nullptr && takes_value(*option)) waiting = option;
    } else {
      const std::vector<const CLI::App*> deeper = visible_subcommands(*command);
      const auto named = std::ranges::find(deeper, words[i], &CLI::App::get_name);
      if (named != deeper.end()) command = *named;
    }
  }
  if (waiting != nullptr) return values_of(*waiting, words.back());
  std::vector<std::string> found;
  if (!words.empty() && words.back().starts_with("-")) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : written(*option)) found.push_back(name);
    }
    return found;
  }
  for (const CLI::App* deeper : visible_subcommands(*command)) found.push_back(deeper->get_name());
  return found.empty() ? arguments_of(*command) : found;
}

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
