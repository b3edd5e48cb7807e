#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot_breakdown.hpp"

namespace foretrain {

namespace {

/// One case per file and combination, named after what tells it from the others.
std::vector<Case> breakdown_cases(const PlotOptions& options) {
  const std::vector<Variation> variations = variations_of(options);
  std::vector<Case> cases;
  for (const std::string& file : options.files) {
    const std::string title = load_scenario(file, options.overrides).name;
    const Combinations all(file, options.overrides, variations);
    for (const std::size_t number : all.distinct()) {
      Case row = all.at(number);
      const std::string combination = all.words(number);
      const bool one_file = options.files.size() == 1 && !combination.empty();
      row.name = one_file ? combination : fmt::format("{}{}{}", title, combination.empty() ? "" : ", ", combination);
      cases.push_back(std::move(row));
    }
  }
  return cases;
}

ExitStatus run(const PlotOptions& options, bool rates) {
  const std::vector<Case> cases = breakdown_cases(options);
  const std::vector<Outcome> outcomes = predict_cases(options, cases);
  std::vector<BreakdownBar> bars;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!outcomes[i].result) {
      warn(cases[i].name + ": " + outcomes[i].error);
    } else if (outcomes[i].result->train()) {
      const TrainResult& train = *outcomes[i].result->train();
      bars.push_back(
          {cases[i].name, train.breakdown, rates ? fmt::format("{:.1f} samples/s", train.samples_per_second) : ""});
    } else {
      throw UsageError(cases[i].name + ": plot breakdown needs a scenario that trains a model");
    }
  }
  if (bars.empty()) throw UsageError("plot breakdown: none of the scenarios could be predicted");
  draw(options, to_figure(bars));
  return bars.size() == cases.size() ? ExitStatus::success : ExitStatus::prediction_failed;
}

}  // namespace

void add_plot_breakdown(CLI::App& plot, ExitStatus& status) {
  const auto rates = std::make_shared<bool>(false);
  add_plot_command(
      plot, status,
      {"breakdown", "where the time of a step goes, one stacked bar per scenario", "FILE",
       "scenarios that train a model", many_inputs | must_draw | takes_overrides | takes_fidelity | takes_jobs,
       "one bar per combination of values, as in `foretrain sweep`"},
      [rates](const PlotOptions& options) { return run(options, *rates); })
      ->add_flag("--rates", *rates, "write samples per second beside the bars");
}

}  // namespace foretrain
