#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot.hpp"

namespace foretrain {

namespace {

/// One case per file and combination, named after what tells it from the others.
std::vector<Case> breakdown_cases(const PlotOptions& options) {
  const std::vector<Variation> variations = parse_variations(options.variations);
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

}  // namespace

ExitStatus plot_breakdown(const PlotOptions& options) {
  const std::vector<Case> cases = breakdown_cases(options);
  const std::vector<Outcome> outcomes = predict_or_warn(options, cases);
  std::vector<BreakdownBar> bars;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!outcomes[i].result) continue;
    const TrainResult* train = outcomes[i].result->train();
    if (train == nullptr) {
      throw UsageError(cases[i].name + ": plot breakdown needs a scenario that trains a model");
    }
    bars.push_back({cases[i].name, train->breakdown,
                    options.rates ? fmt::format("{:.1f} samples/s", train->samples_per_second) : ""});
  }
  if (bars.empty()) throw UsageError("plot breakdown: none of the scenarios could be predicted");
  draw(options, to_figure(bars));
  return bars.size() == cases.size() ? ExitStatus::success : ExitStatus::prediction_failed;
}

}  // namespace foretrain
