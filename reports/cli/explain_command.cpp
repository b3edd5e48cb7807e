#include <fmt/format.h>

#include <algorithm>

#include "model/scenario/load/load.hpp"
#include "reports/cli/told.hpp"
#include "reports/explain/link_use.hpp"
#include "reports/explain/part_loss.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

/// Predicts what can be.
std::vector<WhatIf> answers_of(std::vector<WhatIf> questions, const PlotOptions& options, Fidelity fidelity) {
  const std::vector<Outcome> outcomes =
      predict_with_progress(questions.size(), options.jobs, [&](std::size_t i) -> Result {
        if (!questions[i].scenario) throw UsageError(questions[i].why_not);
        return predict(*questions[i].scenario, fidelity, Detail::numbers);
      });
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (!outcomes[i].result) questions[i].why_not = outcomes[i].error;
    questions[i].result = outcomes[i].result;
  }
  return questions;
}

Reload reload_with(const PlotOptions& options) {
  return [&options](const std::vector<std::string>& further) {
    std::vector<std::string> overrides = options.overrides;
    overrides.insert(overrides.end(), further.begin(), further.end());
    return load_scenario(options.file(), overrides);
  };
}

void tell_losses(const PlotOptions& options, std::optional<Fidelity> wanted, bool json) {
  const Scenario scenario = load_scenario(options.file(), options.overrides);
  if (!std::holds_alternative<TrainWorkload>(scenario.workload)) {
    throw UsageError("--failures tells of trainings: this scenario trains nothing");
  }
  if (!scenario.cluster.groups.empty()) throw UsageError("--failures tells of clusters whose machines are alike");
  const Fidelity fidelity = wanted ? *wanted : what_if_fidelity(scenario, options.fidelity);
  const Result whole = predict(scenario, fidelity, Detail::numbers);
  const std::vector<WhatIf> losses = answers_of(part_losses(scenario, reload_with(options)), options, fidelity);
  json ? print(to_json(whole, losses) + "\n") : print_page(to_text(whole, losses));
}

void tell_links(const PlotOptions& options, bool json) {
  const LinkUses uses = link_uses(load_scenario(options.file(), options.overrides), options.fidelity);
  json ? print(to_json(uses) + "\n") : print_page(to_text(uses));
  if (!options.output.empty()) draw(options, to_figure(uses));
}

}  // namespace

Explanation explanation_of(const PlotOptions& options, std::optional<Fidelity> wanted) {
  const Scenario scenario = load_scenario(options.file(), options.overrides);
  std::ranges::for_each(scenario.assumed, warn);
  const Fidelity what_ifs = wanted ? *wanted : what_if_fidelity(scenario, options.fidelity);
  Result result = predict(scenario, options.fidelity, Detail::timeline);
  std::vector<WhatIf> changes = remedies(scenario, reload_with(options));
  std::optional<Result> unchanged;
  if (what_ifs != options.fidelity) unchanged = predict(scenario, what_ifs, Detail::numbers);
  Explanation explanation =
      explain(scenario, std::move(result), answers_of(scaled_resources(scenario), options, what_ifs),
              answers_of(std::move(changes), options, what_ifs), std::move(unchanged));
  if (const std::optional<Scenario> jittery = with_usual_jitter(scenario)) {
    for (const WhatIf& answer : answers_of({{.name = "jitter", .scenario = jittery}}, options, what_ifs)) {
      if (answer.result) set_spread(explanation, *answer.result);
    }
  }
  return explanation;
}

void add_explain(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<PlotOptions>();
  const auto json = std::make_shared<bool>(false), links = std::make_shared<bool>(false);
  const auto failures = std::make_shared<bool>(false);
  const auto what_ifs = std::make_shared<std::optional<Fidelity>>();
  CLI::App* command =
      app.add_subcommand("explain", "what bounds a scenario, what each resource is worth, and what would help");
  command->add_option("FILE", options->files, "a scenario file, or a name from `foretrain scenarios list`")
      ->required()
      ->expected(1);
  add_fidelity(*command, options->fidelity);
  add_what_if_fidelity(*command, *what_ifs,
                       "how steps that differ by chance and what-ifs are predicted (default: as --fidelity says; "
                       "estimates where a simulation has more than 10 million flows)");
  add_overrides(*command, options->overrides);
  add_jobs(*command, options->jobs);
  add_picture(*command, "-o,--output", options->output,
              "draw the sensitivities as a tornado, or the links over the time");
  command->add_flag("--links", *links, "how busy each link is, when and with what, and which ranks wait for which");
  command->add_flag("--json", *json, "for programs");
  command->add_flag("--failures", *failures,
                    "what a slow GPU, a card, a machine, a switch that fails costs until it is repaired");
  command->callback([options, json, links, failures, what_ifs, &status] {
    options->overrides = planned_overrides(options->file(), options->overrides, options->fidelity);
    status = ExitStatus::success;
    if (*failures) return tell_losses(*options, *what_ifs, *json);
    if (*links) return tell_links(*options, *json);
    const Explanation explanation = explanation_of(*options, *what_ifs);
    *json ? print(to_json(explanation) + "\n") : print_page(to_text(explanation));
    if (!options->output.empty()) draw(*options, to_figure(explanation));
  });
}

}  // namespace foretrain
