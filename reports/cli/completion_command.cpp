// `foretrain completion SHELL` prints what a shell has to read; that asks `foretrain complete` at each press of the
// key.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <string>

#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"

namespace foretrain {

namespace {

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

/// Known values of an option: a name of the catalogue, a setting, or one of the words that its
/// description lists, "estimate|flows|steps".
std::vector<std::string> values_of(const CLI::Option& option, std::string_view begun) {
  if (option.check_lname("model")) return catalogue_names(list_models());
  if (option.check_lname("node")) return catalogue_names(list_hardware(), "node");
  const std::string type = option.get_type_name();
  if (type.starts_with("KEY=")) return settings(begun);
  return type.find('|') == std::string::npos ? std::vector<std::string>() : split(type, '|');
}

std::vector<std::string> arguments_of(const CLI::App& command) {
  const std::string& name = command.get_name();
  const std::string above = command.get_parent() == nullptr ? "" : command.get_parent()->get_name();
  if (name == "help" || name == "keys") return keys::dotted_keys();
  if (above == "models") return catalogue_names(list_models());
  if (above == "hardware") return catalogue_names(list_hardware());
  if (above == "frameworks") return catalogue_names(list_trainers());
  return catalogue_names(list_scenarios());
}

// Words as blanks part them: readline's own end at "=", behind which alone it puts what is chosen.
constexpr const char* bash = R"sh(# foretrain's completion for bash
_foretrain() {
  local line=${COMP_LINE:0:COMP_POINT} IFS=$' \t'
  local -a words=($line)
  [[ $line == *[[:blank:]] ]] && words+=("")
  local word=${words[-1]} IFS=$'\n'
  COMPREPLY=($(compgen -W "$(foretrain complete -- "${words[@]:1}" 2>/dev/null)" -- "$word"))
  [[ $word == *=* && $COMP_WORDBREAKS == *=* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*=}"}"}")
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
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
      if (option != nullptr && option->get_items_expected_max() > 0) waiting = option;
    } else {
      const std::vector<const CLI::App*> deeper = visible_subcommands(*command);
      const auto named = std::ranges::find(deeper, words[i], &CLI::App::get_name);
      if (named != deeper.end()) command = *named;
    }
  }
  if (waiting != nullptr) return values_of(*waiting, words.back());
  std::vector<std::string> found;
  if (const std::size_t equals = words.empty() ? std::string::npos : words.back().find('=');
      equals != std::string::npos && words.back().starts_with("-")) {
    const CLI::Option* option = command->get_option_no_throw(words.back().substr(0, equals));
    if (option == nullptr) return found;
    for (const std::string& value : values_of(*option, words.back().substr(equals + 1))) {
      found.push_back(words.back().substr(0, equals + 1) + value);
    }
    return found;
  }
  if (!words.empty() && words.back().starts_with("-")) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) found.push_back("--" + name);
      for (const std::string& name : option->get_snames()) found.push_back("-" + name);
    }
    return found;
  }
  for (const CLI::App* deeper : visible_subcommands(*command)) found.push_back(deeper->get_name());
  return found.empty() ? arguments_of(*command) : found;
}

void add_completion(CLI::App& app, ExitStatus&) {
  CLI::App* command = app.add_subcommand("completion", "Print shell completion: `source <(foretrain completion bash)`");
  command->require_subcommand(1);
  for (const auto& [shell, script] : std::map<std::string, const char*>{{"bash", bash}, {"zsh", zsh}, {"fish", fish}}) {
    command->add_subcommand(shell, "for " + shell)->callback([script = script] { print(script); });
  }
}

}  // namespace foretrain
