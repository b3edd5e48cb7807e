// `foretrain completion SHELL` prints what a shell has to read; that asks `foretrain complete` at each press of the
// key.
#include <map>

#include "reports/cli/command.hpp"
#include "reports/cli/manual_page.hpp"
#include "reports/cli/options.hpp"

namespace foretrain {

namespace {

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
