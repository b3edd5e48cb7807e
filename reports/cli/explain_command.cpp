#include <algorithm>

#include "model/scenario/load/load.hpp"
#include "reports/cli/shared_reports.hpp"
#include "reports/explain/link_use.hpp"
#include "reports/explain/what_if.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

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

struct ExplainOptions : PlotOptions {
  bool json = false, links = false, failures = false;
  std::optional<Fidelity> what_ifs;
};

void tell_losses(const ExplainOptions& options) {
  const Scenario scenario = load_scenario(options.file(), options.overrides);
  if (!std::holds_alternative<TrainWorkload>(scenario.workload)) {
    throw UsageError("--failures needs a training: this scenario trains nothing");
  }
  if (!scenario.cluster.groups.empty()) throw UsageError("--failures needs a cluster of equal nodes");
  const Fidelity fidelity = options.what_ifs ? *options.what_ifs : what_if_fidelity(scenario, options.fidelity);
  const Result whole = predict(scenario, fidelity, Detail::numbers);
  const std::vector<WhatIf> losses = answers_of(part_losses(scenario, reload_with(options)), options, fidelity);
  options.json ? print(to_json(whole, losses) + "\n") : print_page(to_text(whole, losses));
}

void tell_links(const ExplainOptions& options) {
  const LinkUses uses = link_uses(load_scenario(options.file(), options.overrides), options.fidelity);
  options.json ? print(to_json(uses) + "\n") : print_page(to_text(uses));
  if (!options.output.empty()) draw(options, to_figure(uses));
}

ExitStatus run(const ExplainOptions& asked) {
  ExplainOptions options = asked;
  options.overrides = planned_overrides(options.file(), options.overrides, options.fidelity);
  if (options.failures) {
    tell_losses(options);
  } else if (options.links) {
    tell_links(options);
  } else {
    const Explanation explanation = explanation_of(options, options.what_ifs);
    options.json ? print(to_json(explanation) + "\n") : print_page(to_text(explanation));
    if (!options.output.empty()) draw(options, to_figure(explanation));
  }
  return ExitStatus::success;
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
  auto [command, options] = add_command<ExplainOptions>(
      app, "explain", "Show bottleneck, critical path, sensitivity and single changes of a scenario", status, run);
  command.add_option("FILE", options.files, "a scenario file, or a name from `foretrain scenarios list`")
      ->required()
      ->expected(1);
  add_fidelity(command, options.fidelity);
  add_what_if_fidelity(
      command, options.what_ifs,
      "fidelity of percentiles and what-ifs (default: as --fidelity; estimate above 10 million flows)");
  add_overrides(command, options.overrides);
  add_jobs(command, options.jobs);
  add_picture(command, "-o,--output", options.output,
              "draw the sensitivities as a tornado chart, or link utilisation over time");
  command.add_flag("--links", options.links, "show the utilisation of each link, its traffic, and stragglers");
  command.add_flag("--json", options.json, "print JSON");
  command.add_flag("--failures", options.failures,
                   "show the cost of a slow GPU or a failed NIC, node or switch until repair");
}

}  // namespace foretrain
