// `foretrain plot KIND`: one set of options, one function for each kind (plot_KIND_command.cpp).
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
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
  std::string table;                 ///< plotted data as CSV; empty: not written
  std::optional<std::string> title;  ///< instead of the picture's own
  std::vector<std::string> labels;   ///< instead of the series' names
  double width_cm = 0.0;             ///< in print; 0: a picture for screens
  bool band = false;                 ///< with the predictions' ranges
  Fidelity fidelity = Fidelity::flows;
  int jobs = 1;

  // Options of some kinds; empty: as their help says.
  std::vector<std::string> algorithms, curves, quantities, where;
  std::vector<int> gpus;
  std::string x, y, panels;
  std::string until, beside, run, streams;
  std::string measurements;
  bool constant_tokens = false, rates = false;

  [[nodiscard]] const std::string& file() const { return files.front(); }
};

/// A kind as the help describes it.
struct PlotKind {
  const char *name, *what;
  const char *input, *input_what;  ///< the argument: "FILE", "scenarios that train a model"; null: there is none
  /// Names of options (plot_options.cpp), with blanks between. Also "many" inputs or "any" number instead of one,
  /// "draw" where there is no text, so that there must be an output, and "vary" where there must be a variation.
  std::string_view options;
  ExitStatus (*run)(const PlotOptions& options);
  const char* variations = nullptr;  ///< purpose of --vary; null: there is no such option
};

/// Adds what the kind takes to its subcommand.
void add_plot_options(CLI::App& app, const PlotKind& kind, PlotOptions& options);

/// Time of --until. Throws UsageError.
Seconds end_of(const PlotOptions& options);

/// Writes the picture, and what is drawn, where the command line says.
ExitStatus draw(const PlotOptions& options, Figure figure);

/// The picture if one is wanted, then the text.
ExitStatus show(const PlotOptions& options, Figure figure, const std::string& text, bool complete = true);

template <typename Chart>
ExitStatus show(const PlotOptions& options, const Chart& chart, bool complete = true) {
  const bool drawn = !options.output.empty() || !options.table.empty();
  return show(options, drawn ? to_figure(chart) : Figure{}, to_text(chart), complete);
}

/// Predicts the rows by as many workers as the options say, and tells what cannot be predicted.
std::vector<Outcome> predict_or_warn(const PlotOptions& options, const std::vector<Case>& cases);

/// The range in seconds in which a predicted time lies; nothing in it where there is no prediction.
Span range_of(const Outcome& outcome);

#define PLOT_KIND(name) ExitStatus plot_##name(const PlotOptions& options);
#include "reports/cli/commands.def"

}  // namespace foretrain
