#include "reports/cli/completion.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/keys/key_tree.hpp"

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

}  // namespace foretrain
