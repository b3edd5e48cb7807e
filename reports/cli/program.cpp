#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"

namespace foretrain {

namespace {

constexpr const char* examples = R"(
Examples:
  foretrain predict gpt3-175b-1024-a100              predict a run of the catalogue
  foretrain predict mine.yaml --set cluster.nodes=16 predict your scenario with one change
  foretrain plan mine.yaml                           find the fastest plan
  foretrain sweep mine.yaml --vary cluster.nodes=1..64x2 -o out.csv
  foretrain explain mine.yaml                        show bottleneck and remedies
  foretrain scenarios list                           list shipped scenarios
)";

/// The subcommand that the user meant by an unknown word; nothing where all are.
std::optional<std::string> no_subcommand(const CLI::App& app, std::span<char* const> words) {
  const CLI::App* command = &app;
  std::string path;
  for (const std::string word : words) {
    if (command->get_require_subcommand_min() == 0 || word.starts_with("-")) return std::nullopt;
    const auto named = command->get_subcommands([&](const CLI::App* one) { return one->check_name(word); });
    if (named.empty()) {
      std::vector<std::string> known;
      std::optional<std::string> near;  // first of all the command of another that has just this name
      for (const CLI::App* one : visible_subcommands(*command)) {
        known.push_back(one->get_name());
        const auto is_it = [&](const CLI::App* below) { return below->get_name() == word; };
        if (!near && !one->get_subcommands(is_it).empty()) near = one->get_name() + " " + word;
      }
      if (!near) near = nearest_word(word, known);
      return fmt::format(
          "there is no command \"{}{}\"; {}", path, shortened(word, 60),
          did_you_mean(near, path.empty() ? "`foretrain --help` lists all" : or_list(known, known.size())));
    }
    command = named.front();
    path += command->get_name() + " ";
  }
  return std::nullopt;
}

/// " (with --next)": the names of options behind a word.
std::string listed(std::string_view word, const std::set<CLI::Option*>& options) {
  std::string names;
  for (const CLI::Option* option : options) names += (names.empty() ? "" : ", ") + option->get_name();
  return names.empty() ? "" : fmt::format(" ({} {})", word, names);
}

/// Says behind an option's description, not in the column of names, what it needs and what it excludes.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    return text.substr(0, std::min(text.find(" Needs:"), text.find(" Excludes:")));
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return option->get_description() + listed("with", option->get_needs()) + listed("not with", option->get_excludes());
  }
};

/// Text of an error, with the user's long words cut.
std::string reported(std::string_view error) {
  constexpr std::size_t longest_word = 400;
  std::string text;
  for (std::size_t at = 0, end = 0; at < error.size(); at = end) {
    end = std::min(error.find_first_of(" \n", at + 1), error.size());
    text += shortened(error.substr(at, end - at), longest_word);
  }
  return printable(text);
}

/// Help and version are answers; everything else that ends the parsing is wrong usage.
ExitStatus explain(const CLI::App& app, const CLI::ParseError& end) {
  if (end.get_exit_code() != 0) {
    std::string command = app.get_name();
    for (const CLI::App* one = &app; !one->get_subcommands().empty(); command += " " + one->get_name()) {
      one = one->get_subcommands().front();
    }
    std::fprintf(stderr, "foretrain: %s; `%s --help` explains its arguments\n", reported(end.what()).c_str(),
                 command.c_str());
    return ExitStatus::bad_input;
  }
  std::ostringstream answer;
  app.exit(end, answer);
  print_page(wrapped_help(answer.str()));
  return ExitStatus::success;
}

ExitStatus complete(const CLI::App& app, int argc, char** argv) {
  const int first = argc > 2 && argv[2] == std::string_view("--") ? 3 : 2;
  for (const std::string& word : completions(app, {argv + first, argv + argc})) print(word + "\n");
  return ExitStatus::success;
}

ExitStatus parse(CLI::App& app, int argc, char** argv, const ExitStatus& status) {
  if (argv[1] == std::string_view("complete")) return complete(app, argc, argv);
  if (const std::optional<std::string> complaint = no_subcommand(app, {argv + 1, argv + argc})) {
    throw UsageError(*complaint);
  }
  try {
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& end) {
    return explain(app, end);
  }
}

ExitStatus complain(const std::string& error, ExitStatus status) {
  const bool coloured = has_colours(STDERR_FILENO);
  std::fprintf(stderr, "%sforetrain:%s %s\n", coloured ? "\033[1;31m" : "", coloured ? "\033[0m" : "",
               reported(error).c_str());
  return status;
}

/// The command that is called; all of them where another word is, or the words of all are asked for.
void add_commands(CLI::App& app, ExitStatus& status, std::string_view called) {
  using Add = void (*)(CLI::App&, ExitStatus&);
  constexpr std::pair<std::string_view, Add> commands[] = {
#define COMMAND(name) {#name, add_##name},
#define GROUP(title) {title, nullptr},
#include "reports/cli/commands.def"
  };
  const auto* only =
      std::ranges::find(commands, called == "completion" ? "" : called, &std::pair<std::string_view, Add>::first);
  std::string group;
  for (const auto& [name, add] : commands) {
    if (add == nullptr) group = name;
    if (add == nullptr || (only != std::end(commands) && only->first != name)) continue;
    add(app, status);
    for (CLI::App* added : app.get_subcommands([](const CLI::App* one) { return one->get_group() == "Subcommands"; })) {
      added->group(group);
    }
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  CLI::App app("Predicts how long a training step takes, and why.", "foretrain");
  app.set_version_flag("--version", FORETRAIN_VERSION);
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  ExitStatus status = ExitStatus::success;
  add_commands(app, status, argc > 1 ? argv[1] : "");
  app.footer(examples);
  fit_pages_to_window();
  if (argc < 2) {
    std::fputs(wrapped_help(app.help()).c_str(), stderr);
    return ExitStatus::bad_input;
  }
  try {
    const ExitStatus end = parse(app, argc, argv, status);
    finish_output();
    return end;
  } catch (const std::bad_alloc&) {
    return complain(
        fmt::format("{}: the memory does not suffice; a smaller scenario or file, or fewer --jobs", argv[1]),
        ExitStatus::prediction_failed);
  } catch (const std::exception& error) {
    const auto [text, kind] = reply_of(error);
    if (kind == Reply::Kind::bad_input) return complain(text, ExitStatus::bad_input);
    const bool internal = dynamic_cast<const std::logic_error*>(&error) != nullptr;
    return complain(text, internal ? ExitStatus::internal_error : ExitStatus::prediction_failed);
  }
}

}  // namespace foretrain
