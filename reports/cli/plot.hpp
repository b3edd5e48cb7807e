// What the subcommands of `foretrain plot` have in common. Each has one function, which adds it to the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/base/files.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/vary.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

struct PlotOptions {
  std::vector<std::string> files;
  std::vector<std::string> variations;
  std::vector<std::string> overrides;
  std::string output;
  Fidelity fidelity = Fidelity::flows;
  int jobs = 1;

  [[nodiscard]] const std::string& file() const { return files.front(); }
};

/// What a picture's subcommand takes besides one input and an output that it can do without.
enum PlotTakes : unsigned {
  many_inputs = 1,  ///< one or more
  any_inputs = 2,   ///< none or more
  must_draw = 4,    ///< there is no text, so there must be an output
  takes_overrides = 8,
  takes_fidelity = 16,
  takes_jobs = 32
};

/// A subcommand as the help describes it.
struct PlotCommand {
  const char *name, *what;
  const char *input, *input_what;    ///< the argument: "FILE", "scenarios that train a model"; null: there is none
  unsigned takes = 0;                ///< of PlotTakes
  const char* variations = nullptr;  ///< what --vary is for; null: there is no such option
};

/// Adds the subcommand to `plot`; `run` gets the shared options, which live as long as the command line.
CLI::App* add_plot_command(CLI::App& plot, ExitStatus& status, const PlotCommand& command,
                           std::function<ExitStatus(const PlotOptions&)> run);

/// Writes the picture where the command line says.
ExitStatus draw(const PlotOptions& options, const Figure& figure);

/// The picture if one is wanted, then the text.
template <typename Result>
ExitStatus show(const PlotOptions& options, const Result& result, bool complete) {
  if (!options.output.empty()) draw(options, to_figure(result));
  print_page(to_text(result));
  return complete ? ExitStatus::success : ExitStatus::prediction_failed;
}

/// Predicts the rows by as many workers as the options say.
std::vector<Outcome> predict_cases(const PlotOptions& options, const std::vector<Case>& cases);

/// The values of every --vary.
std::vector<Variation> variations_of(const PlotOptions& options);

#define PLOT_COMMAND(name) void add_plot_##name(CLI::App& plot, ExitStatus& status);
#include "reports/cli/commands.def"

}  // namespace foretrain
