#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/scenario/cases.hpp"
#include "model/scenario/load.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plots.hpp"
#include "reports/cli/scaling.hpp"
#include "reports/cli/sweep_figure.hpp"
#include "reports/cli/vary.hpp"
#include "reports/plot_breakdown.hpp"

namespace foretrain {

namespace {

struct ScalingCommand {
  ScalingOptions scaling;
  std::string output;
};

void sort_gpus(std::vector<int>& gpus) {
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
}

ExitStatus run_scaling(ScalingCommand& command) {
  sort_gpus(command.scaling.gpus);
  const ScalingFigure figure = predict_scaling(command.scaling);
  if (!command.output.empty()) write_file(command.output, to_svg(figure));
  print(to_text(figure));
  for (const ScalingPanel& panel : figure.panels) {
    for (const ScalingCurve& curve : panel.curves) {
      if (std::find(curve.times.begin(), curve.times.end(), std::nullopt) != curve.times.end()) {
        return ExitStatus::prediction_failed;
      }
    }
  }
  return ExitStatus::success;
}

void add_scaling(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<ScalingCommand>();
  CLI::App* command = plot.add_subcommand("scaling", "step time by number of GPUs, for each way of synchronising");
  command->add_option("FILE", options->scaling.files, "scenarios that train a model: one panel each")->required();
  command->add_option("--gpus", options->scaling.gpus, "numbers of GPUs (default: 1,2,4,8,16)")
      ->delimiter(',')
      ->type_name("N,N,…")
      ->check(CLI::Range(1, 1 << 20).description(""));
  command
      ->add_option("--algorithms", options->scaling.algorithms,
                   "values of plan.sync.algorithm (default: ring,parameter_server,naive)")
      ->delimiter(',')
      ->type_name("NAME,NAME,…");
  command->add_flag("--strong", options->scaling.strong, "keep the global batch instead of the batch per GPU");
  command->add_option("-o,--output", options->output, "draw it as well")->type_name("OUT.svg");
  add_fidelity(*command, options->scaling.fidelity);
  add_overrides(*command, options->scaling.overrides);
  add_jobs(*command, options->scaling.jobs);
  command->callback([options, &status] { status = run_scaling(*options); });
}

struct BreakdownCommand {
  std::vector<std::string> files;
  std::vector<std::string> variations;
  std::vector<std::string> overrides;
  std::string output;
  bool rates = false;
  Fidelity fidelity = Fidelity::flows;
  int jobs = 1;
};

/// What tells a combination from the others: of a single varied key its value, of several the keys as well.
std::string combination_name(const Case& row, const std::vector<Variation>& variations) {
  return variations.size() == 1 ? row.overrides.back().value : row.name;
}

/// One case per file and combination, named after what tells it from the others.
std::vector<Case> breakdown_cases(const BreakdownCommand& command) {
  std::vector<Variation> variations;
  for (const std::string& text : command.variations) variations.push_back(parse_variation(text));
  std::vector<Case> cases;
  for (const std::string& file : command.files) {
    const std::string title = load_scenario(file, command.overrides).name;
    for (Case& row : combinations(file, command.overrides, variations)) {
      const std::string combination = combination_name(row, variations);
      const bool one_file = command.files.size() == 1 && !combination.empty();
      row.name = one_file ? combination : title + (combination.empty() ? "" : ", " + combination);
      cases.push_back(std::move(row));
    }
  }
  return cases;
}

ExitStatus run_breakdown(const BreakdownCommand& command) {
  const std::vector<Case> cases = breakdown_cases(command);
  const std::vector<Outcome> outcomes = predict_with_progress(
      cases.size(), command.jobs, [&](std::size_t i) { return predict_row(cases[i], command.fidelity); });
  std::vector<BreakdownBar> bars;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!outcomes[i].result) {
      warn(cases[i].name + ": " + outcomes[i].error);
    } else if (outcomes[i].result->train) {
      const TrainResult& train = *outcomes[i].result->train;
      bars.push_back({cases[i].name, train.breakdown,
                      command.rates ? fmt::format("{:.1f} samples/s", train.samples_per_second) : ""});
    } else {
      throw UsageError(cases[i].name + ": plot breakdown needs a scenario that trains a model");
    }
  }
  if (bars.empty()) throw UsageError("plot breakdown: none of the scenarios could be predicted");
  write_file(command.output, breakdown_svg(bars));
  return bars.size() == cases.size() ? ExitStatus::success : ExitStatus::prediction_failed;
}

void add_breakdown(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<BreakdownCommand>();
  CLI::App* command = plot.add_subcommand("breakdown", "where the time of a step goes, one stacked bar per scenario");
  command->add_option("FILE", options->files, "scenarios that train a model")->required();
  add_variations(*command, options->variations, "one bar per combination of values, as in `foretrain sweep`");
  command->add_option("-o,--output", options->output, "where the picture goes")->type_name("OUT.svg")->required();
  add_fidelity(*command, options->fidelity);
  add_overrides(*command, options->overrides);
  add_jobs(*command, options->jobs);
  command->add_flag("--rates", options->rates, "write samples per second beside the bars");
  command->callback([options, &status] { status = run_breakdown(*options); });
}

struct SweepCommand {
  SweepFigureOptions sweep;
  std::string output;
};

ExitStatus run_sweep(const SweepCommand& command) {
  const SweepFigure figure = predict_sweep(command.sweep);
  if (!command.output.empty()) write_file(command.output, to_svg(figure));
  print(to_text(figure));
  for (const SweepCurve& curve : figure.curves) {
    if (std::find(curve.times.begin(), curve.times.end(), std::nullopt) != curve.times.end()) {
      return ExitStatus::prediction_failed;
    }
  }
  return ExitStatus::success;
}

void add_sweep_plot(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<SweepCommand>();
  CLI::App* command = plot.add_subcommand("sweep", "time over the values of one key, and its best value");
  command->add_option("FILE", options->sweep.file, "the scenario to vary")->required();
  add_variations(*command, options->sweep.variations,
                 "the axis, as in `foretrain sweep`; further ones make a curve for each combination of their values")
      ->required();
  command->add_option("-o,--output", options->output, "draw it as well")->type_name("OUT.svg");
  add_fidelity(*command, options->sweep.fidelity);
  add_overrides(*command, options->sweep.overrides);
  add_jobs(*command, options->sweep.jobs);
  command->callback([options, &status] { status = run_sweep(*options); });
}

}  // namespace

void add_plot(CLI::App& app, ExitStatus& status) {
  CLI::App* plot = app.add_subcommand("plot", "pictures (SVG); predicted against measured: `foretrain validate -o`");
  plot->require_subcommand(1);
  add_scaling(*plot, status);
  add_breakdown(*plot, status);
  add_plot_map(*plot, status);
  add_plot_bandwidth(*plot, status);
  add_sweep_plot(*plot, status);
  add_plot_replay(*plot, status);
  add_plot_latency(*plot, status);
  add_plot_memory(*plot, status);
  add_plot_timeline(*plot, status);
  add_plot_attention(*plot, status);
  add_plot_roofline(*plot, status);
  add_plot_measured(*plot, status);
}

}  // namespace foretrain
