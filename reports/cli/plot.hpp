// `foretrain plot KIND`: one set of options, one function for each kind (plot_KIND_command.cpp).
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
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
  std::string table;                 ///< what is drawn, as CSV; empty: not written
  std::optional<std::string> title;  ///< instead of the picture's own
  std::vector<std::string> labels;   ///< instead of the series' names
  double width_cm = 0.0;             ///< in print; 0: a picture for screens
  bool band = false;                 ///< with the predictions' ranges
  Fidelity fidelity = Fidelity::flows;
  int jobs = 1;

  // What some kinds take (plot_options.cpp); empty: as their help says.
  std::vector<std::string> algorithms, cases, curves, kinds, nodes, quantities, where;
  std::vector<std::int64_t> lengths;
  std::vector<int> gpus;
  std::string kind, x, y, panels;
  std::string from, until, beside, run, streams;
  std::string measurements;
  bool constant_tokens = false, rates = false, strong = false;

  [[nodiscard]] const std::string& file() const { return files.front(); }
};

/// What a kind takes besides one input and an output that it can do without.
enum PlotTakes : unsigned {
  many_inputs = 1,  ///< one or more
  any_inputs = 2,   ///< none or more
  must_draw = 4,    ///< there is no text, so there must be an output
  takes_overrides = 8,
  takes_fidelity = 16,
  takes_jobs = 32,
  takes_band = 64,  ///< its predictions have ranges
  must_vary = 128
};

/// A kind as the help describes it.
struct PlotKind {
  const char *name, *what;
  const char *input, *input_what;  ///< the argument: "FILE", "scenarios that train a model"; null: there is none
  unsigned takes;                  ///< of PlotTakes
  std::string_view options;        ///< more of them by name, with blanks between: "gpus strong"
  ExitStatus (*run)(const PlotOptions& options);
  const char* variations = nullptr;  ///< what --vary is for; null: there is no such option
};

/// Adds what the kind takes to its subcommand.
void add_plot_options(CLI::App& app, const PlotKind& kind, PlotOptions& options);

/// The moment that an option states. Throws UsageError naming it.
Seconds moment_of(const std::string& option, const std::string& text);

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
