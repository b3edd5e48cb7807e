#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/figure_table.hpp"

namespace foretrain {

namespace {

/// "8.5cm", "85 mm" or "3.35 in".
double centimetres(const std::string& text) {
  constexpr std::pair<std::string_view, double> units[] = {{"cm", 1.0}, {"mm", 0.1}, {"in", 2.54}};
  try {
    const NumberAndUnit width = split_number_and_unit(text);
    for (const auto& [unit, size] : units) {
      const double cm = width.number * size;
      if (width.unit == unit && cm >= 4.0 && cm <= 100.0) return cm;
    }
  } catch (const UnitError&) {
    // Said below, in the words of the option.
  }
  throw UsageError("--width " + text + ": a width of 4 to 100 cm, such as 8.5cm, 85mm or 3.35in");
}

/// How a picture is to look, and where its numbers go.
void add_looks(CLI::App& app, PlotOptions& options, bool band) {
  app.add_option_function<std::string>(
         "--title", [&options](const std::string& title) { options.title = title; },
         "instead of the picture's own; '': none")
      ->type_name("TEXT");
  app.add_option_function<std::string>(
         "--labels",
         [&options](const std::string& names) {
           for (const std::string& name : split(names, ',')) options.labels.emplace_back(trim(name));
         },
         "names of the series, in their order")
      ->type_name("NAME,NAME,…");
  const auto refuse = [](const std::string& file) -> std::string {
    return file.ends_with(".csv") ? "" : file + ": what is drawn is written as .csv";
  };
  app.add_option("--csv", options.table, "write what is drawn: plain numbers, their units in the header")
      ->type_name("FILE.csv")
      ->check(refuse, "");
  app.add_option_function<std::string>(
         "--width", [&options](const std::string& width) { options.width_cm = centimetres(width); },
         "for print, so wide: letters of 6 points and more, a column of a paper is 8.5cm")
      ->type_name("WIDTH");
  if (band) app.add_flag("--band", options.band, "shade the range in which nine of ten such cases lie");
}

/// The figure as the command line wants it.
void dress(Figure& figure, const PlotOptions& options) {
  name_series(figure, options.labels);
  figure.width_cm = options.width_cm;
  if (!options.title) return;
  (figure.panels.size() == 1 ? figure.panels.front().title : figure.title) = *options.title;
}

}  // namespace

CLI::App* add_plot_command(CLI::App& plot, ExitStatus& status, const PlotCommand& command,
                           std::function<ExitStatus(const PlotOptions&)> run) {
  const auto options = std::make_shared<PlotOptions>();
  CLI::App* app = plot.add_subcommand(command.name, command.what);
  const auto takes = [&](PlotTakes what) { return (command.takes & what) != 0; };
  if (command.input != nullptr) {
    CLI::Option* input = app->add_option(command.input, options->files, command.input_what);
    if (!takes(any_inputs)) input->required();
    if (!takes(any_inputs) && !takes(many_inputs)) input->expected(1);
  }
  add_picture(*app, "-o,--output", options->output, takes(must_draw) ? "where the picture goes" : "draw it as well")
      ->required(takes(must_draw));
  add_looks(*app, *options, takes(takes_band));
  if (command.variations != nullptr) add_variations(*app, options->variations, command.variations);
  if (takes(takes_fidelity)) add_fidelity(*app, options->fidelity);
  if (takes(takes_overrides)) add_overrides(*app, options->overrides);
  if (takes(takes_jobs)) add_jobs(*app, options->jobs);
  app->callback([options, &status, run = std::move(run)] { status = run(*options); });
  return app;
}

Seconds moment_of(const std::string& option, const std::string& text) {
  try {
    return parse_quantity<Seconds>(text);
  } catch (const UnitError& error) {
    throw UsageError("plot: " + option + " " + text + ": " + error.got() + "; a time, such as 2 ms");
  }
}

ExitStatus draw(const PlotOptions& options, Figure figure) {
  dress(figure, options);
  const std::string picture = options.output.empty() ? "" : to_picture(figure, *picture_format(options.output));
  if (!options.table.empty()) write_file(options.table, to_csv(figure));
  if (!options.output.empty()) write_file(options.output, picture);
  return ExitStatus::success;
}

TimeRange range_of(const Outcome& outcome) {
  if (!outcome.result) return {};
  const Result& result = *outcome.result;
  const bool says = result.uncertainty_high > Seconds(0);
  return says ? TimeRange{result.uncertainty_low, result.uncertainty_high} : TimeRange{result.time(), result.time()};
}

std::vector<Outcome> predict_cases(const PlotOptions& options, const std::vector<Case>& cases) {
  return predict_with_progress(cases.size(), options.jobs,
                               [&](std::size_t i) { return predict_row(cases[i], options.fidelity); });
}

std::vector<Variation> variations_of(const PlotOptions& options) {
  std::vector<Variation> variations;
  for (const std::string& text : options.variations) variations.push_back(parse_variation(text));
  return variations;
}

void add_plot(CLI::App& app, ExitStatus& status) {
  CLI::App* plot =
      app.add_subcommand("plot", "pictures (SVG, PNG, PDF); predicted against measured: `foretrain validate -o`");
  plot->require_subcommand(1);
#define PLOT_COMMAND(name) add_plot_##name(*plot, status);
#include "reports/cli/commands.def"
}

}  // namespace foretrain
