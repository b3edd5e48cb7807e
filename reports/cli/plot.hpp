// What the subcommands of `foretrain plot` have in common. Each has one function, which adds it to the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/base/files.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/vary.hpp"
#include "reports/figure/time_curves.hpp"

namespace foretrain {

struct PlotOptions {
  std::vector<std::string> files;
  std::vector<std::string> variations;
  std::vector<std::string> overrides;
  std::string output;
  std::string table;                 ///< what is drawn, as CSV; empty: not written
  std::optional<std::string> title;  ///< instead of the picture's own
  std::vector<std::string> labels;   ///< instead of the series' names
  double width_cm = 0.0;             ///< in print; 0: a picture for screens
  bool band = false;                 ///< with the predictions' ranges
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
  takes_jobs = 32,
  takes_band = 64  ///< its predictions have ranges
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

/// The moment that an option states. Throws UsageError naming it.
Seconds moment_of(const std::string& option, const std::string& text);

/// Writes the picture, and what is drawn, where the command line says.
ExitStatus draw(const PlotOptions& options, Figure figure);

/// The picture if one is wanted, then the text.
template <typename Result>
ExitStatus show(const PlotOptions& options, const Result& result, bool complete) {
  if (!options.output.empty() || !options.table.empty()) draw(options, to_figure(result));
  print_page(to_text(result));
  return complete ? ExitStatus::success : ExitStatus::prediction_failed;
}

/// Predicts the rows by as many workers as the options say.
std::vector<Outcome> predict_cases(const PlotOptions& options, const std::vector<Case>& cases);

/// The range in which a predicted time lies; nothing in it where there is no prediction.
TimeRange range_of(const Outcome& outcome);

/// The values of every --vary.
std::vector<Variation> variations_of(const PlotOptions& options);

#define PLOT_COMMAND(name) void add_plot_##name(CLI::App& plot, ExitStatus& status);
#include "reports/cli/commands.def"

}  // namespace foretrain
