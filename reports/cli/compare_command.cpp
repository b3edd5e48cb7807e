#include "model/base/error.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/explain/comparison.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

struct CompareOptions {
  std::vector<std::string> files, overrides;
  Fidelity fidelity = Fidelity::flows;
  int jobs = 1;
  bool json = false;
};

ExitStatus run(const CompareOptions& options) {
  const std::vector<Outcome> outcomes = predict_with_progress(options.files.size(), options.jobs, [&](std::size_t i) {
    return predict(planned_file(options.files[i], options.overrides, options.fidelity), options.fidelity);
  });
  std::vector<Result> results;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].result) {
      results.push_back(*outcomes[i].result);
      continue;
    }
    warn(outcomes[i].error);
    if (outcomes[i].bad_input) return ExitStatus::bad_input;
  }
  if (results.size() < outcomes.size()) return ExitStatus::prediction_failed;
  options.json ? print(comparison_json(results) + "\n") : print_page(comparison_text(results));
  return ExitStatus::success;
}

}  // namespace

void add_compare(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "two or more scenarios side by side, and why they differ");
  command->add_option("FILE", options->files, "scenario files, or names; the first is what others are compared with")
      ->required()
      ->expected(2, 16);
  add_fidelity(*command, options->fidelity);
  add_overrides(*command, options->overrides);
  add_jobs(*command, options->jobs);
  command->add_flag("--json", options->json, "for programs");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain
