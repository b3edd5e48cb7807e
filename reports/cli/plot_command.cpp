#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "model/base/error.hpp"
#include "reports/cli/plot.hpp"

namespace foretrain {

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
  if (command.variations != nullptr) add_variations(*app, options->variations, command.variations);
  if (takes(takes_fidelity)) add_fidelity(*app, options->fidelity);
  if (takes(takes_overrides)) add_overrides(*app, options->overrides);
  if (takes(takes_jobs)) add_jobs(*app, options->jobs);
  app->callback([options, &status, run = std::move(run)] { status = run(*options); });
  return app;
}

ExitStatus draw(const PlotOptions& options, const Figure& figure) {
  write_picture(options.output, figure);
  return ExitStatus::success;
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
