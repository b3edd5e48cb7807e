// What a shell may offer behind `foretrain …`: read off the command line's own description.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace foretrain {

/// What may stand in place of the last of `words`, which are those behind the program's name; the last may be empty.
/// Subcommands, options, an option's words, names of the catalogue; all of them, whatever the last word begins with.
std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words);

/// The subcommands that people are told of.
std::vector<const CLI::App*> visible_subcommands(const CLI::App& app);

}  // namespace foretrain
