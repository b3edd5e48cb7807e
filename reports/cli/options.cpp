#include "reports/cli/options.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "model/planning/plan_search.hpp"
#include "reports/print/number.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

CLI::Option* add_choice(CLI::App& command, const std::string& name, const std::vector<std::string>& words,
                        const std::function<void(std::size_t)>& take, const std::string& what) {
  const auto choose = [name, words, take](const std::string& word) {
    const auto known = std::ranges::find(words, word);
    if (known == words.end()) throw CLI::ValidationError(name, "there is no " + word + "; write " + or_list(words));
    take(static_cast<std::size_t>(known - words.begin()));
  };
  return command.add_option_function<std::string>(name, choose, what)
      ->type_name(fmt::format("{}", fmt::join(words, "|")));
}

CLI::Option* add_repeatable(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                            const std::string& what, const std::string& type) {
  return add_text(command, name, values, type, what)->expected(1)->take_all()->allow_extra_args(false);
}

void add_gpu_numbers(CLI::App& command, std::vector<int>& gpus, const std::string& what) {
  command.add_option("--gpus", gpus, what)
      ->delimiter(',')
      ->allow_extra_args(false)  // the next word may be the scenario
      ->type_name("N[,N]")
      ->check(CLI::Range(1, 1 << 20).description(""));
}

void add_fidelity(CLI::App& command, Fidelity& fidelity) {
  add_word<Fidelity>(
      command, "--fidelity", fidelity,
      "estimate: no contention; flows: simulated contention (default); steps: each step of each collective");
}

Fidelity fidelity_named(const std::string& word) {
  if (const std::optional<Fidelity> fidelity = value_of<Fidelity>(word)) return *fidelity;
  throw UsageError(fmt::format("fidelity: there is no {}; write estimate, flows or steps", shortened(word, 60)));
}

void add_what_if_fidelity(CLI::App& command, std::optional<Fidelity>& fidelity, const std::string& what) {
  add_word<Fidelity>(command, "--what-ifs", fidelity, what);
}

void add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  add_repeatable(command, "--set", overrides, "override a scenario key: plan.tensor=4, cluster.nodes=2, …",
                 "KEY=VALUE");
  add_stack(command, overrides);
}

namespace {

/// An option whose value `override_of` makes an override.
template <typename OverrideOf>
void add_setting(CLI::App& command, std::vector<std::string>& overrides, const char* name, const char* type,
                 const char* what, OverrideOf override_of) {
  const auto set = [&overrides, name, override_of](const std::string& value) {
    overrides.push_back(fmt::format("{} {}", name, override_of(value)));
  };
  command.add_option_function<std::string>(name, set, what)->type_name(type);
}

StepTimeOf step_time_by(Fidelity fidelity) {
  return [fidelity](const Scenario& scenario) { return predict(scenario, fidelity, Detail::numbers).time(); };
}

std::size_t finalists_by(Fidelity fidelity) { return fidelity == Fidelity::estimate ? 1 : 20; }

}  // namespace

void add_stack(CLI::App& command, std::vector<std::string>& overrides) {
  add_setting(command, overrides, "--stack", "PROFILE.yaml",
              "use a settings profile from `foretrain learn` (sets plan.framework)", stack_override);
}

void add_headroom(CLI::App& command, std::vector<std::string>& overrides) {
  add_setting(command, overrides, "--headroom", "SHARE", "share of GPU memory to keep free (default: 6 %)",
              [](const std::string& share) { return "plan.headroom=" + share; });
}

void add_calibration(CLI::App& command, std::vector<std::string>& overrides) {
  add_setting(command, overrides, "--calibration", "CALIBRATION.json", "use model constants from `foretrain calibrate`",
              [](const std::string& file) { return "calibration=" + file; });
}

std::string stack_override(const std::string& stack) {
  return "plan.framework=" + std::filesystem::absolute(stack).string();
}

std::vector<Case> with_overrides(std::vector<Case> rows, const std::vector<std::string>& overrides) {
  for (Case& row : rows) {
    for (const std::string& text : overrides) row.overrides.push_back(parse_override(text));
  }
  return rows;
}

CLI::Option* add_variations(CLI::App& command, std::vector<std::string>& variations, const std::string& what) {
  return add_repeatable(command, "--vary", variations, what, "KEY=VALUES");
}

CLI::Option* add_picture(CLI::App& command, const std::string& name, std::string& path, const std::string& what) {
  const auto refuse = [](const std::string& file) -> std::string {
    if (picture_format(file)) return "";
    const bool trace = file.ends_with(".json") || file.ends_with(".json.gz");
    return fmt::format("{}: a picture is written as .svg, .png or .pdf{}", file,
                       trace ? "; `foretrain timeline` writes a trace" : "");
  };
  return add_text(command, name, path, "PICTURE", what + " (.svg, .png or .pdf)")->check(refuse, "");
}

void write_picture(const std::string& path, const Figure& figure) {
  write_file(path, to_picture(figure, picture_format(path).value()));
}

void add_jobs(CLI::App& command, int& jobs) {
  jobs = default_workers();
  add_number(command, "--jobs", jobs, 1, 1024, "parallel predictions (default: one per processor)");
}

void write_or_print(const std::string& path, const std::string& text) {
  path.empty() ? print(text) : write_file(path, text);
}

void write_new_file(const std::string& path, const std::string& text) {
  std::error_code unseen;
  if (std::filesystem::exists(path, unseen)) throw UsageError(path + " exists; write to another file");
  write_or_print(path, text);
}

void print(std::string_view text) {
  const std::string shown(isatty(STDOUT_FILENO) != 0 ? printable(text) : std::string(text));
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void finish_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw UsageError(fmt::format("cannot write the output: {}", std::strerror(errno)));
  }
}

void warn(std::string_view text) { fmt::print(stderr, "foretrain: {}\n", printable(text)); }

Progress::Progress(std::size_t total, std::string what)
    : total_(total), what_(std::move(what)), started_(std::chrono::steady_clock::now()), told_(started_) {}

double Progress::elapsed_seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

void Progress::advance_to(std::size_t done, std::size_t total) {
  done_ = done;
  total_ = total;
  const auto now = std::chrono::steady_clock::now();
  const bool terminal = line_.visible();
  if (now - told_ < (terminal ? std::chrono::milliseconds(100) : std::chrono::minutes(1)) && done_ < total_) return;
  if (!terminal && done_ >= total_) return;
  told_ = now;
  const double rate = static_cast<double>(done_) / elapsed_seconds();
  const double left = static_cast<double>(total_ - std::min(done_, total_)) / rate;
  std::string text = fmt::format("{} of {} {}, {} a second", done_, total_, what_, plain_number(rate));
  if (std::isfinite(left)) text += fmt::format(", {} left", format_seconds(Seconds(left)));
  if (terminal) {
    line_.show(text);
  } else {
    fmt::print(stderr, "{}\n", text);
  }
}

std::vector<std::string> planned_overrides(const std::string& file, std::vector<std::string> overrides,
                                           Fidelity fidelity) {
  const YamlNode document = scenario_document(file, overrides);
  const std::vector<std::string> chosen = auto_overrides(document, std::filesystem::path(file).stem().string(),
                                                         step_time_by(fidelity), finalists_by(fidelity));
  overrides.insert(overrides.end(), chosen.begin(), chosen.end());
  return overrides;
}

Scenario planned_scenario(YamlNode document, const std::string& name, Fidelity fidelity) {
  for (const std::string& chosen : auto_overrides(document, name, step_time_by(fidelity), finalists_by(fidelity))) {
    Override change = parse_override(chosen);
    change.where.file = "plan: auto";
    apply_override(document, change);
  }
  return read_scenario(std::move(document), name);
}

Scenario planned_file(const std::string& file, const std::vector<std::string>& overrides, Fidelity fidelity) {
  return planned_scenario(scenario_document(file, overrides), std::filesystem::path(file).stem().string(), fidelity);
}

Result predict_row(const Case& row, Fidelity fidelity) {
  Scenario scenario = planned_scenario(document_of(row), row.name, fidelity);
  scenario.name = row.name;  // the base's name would be the same for all rows
  return predict(scenario, fidelity, Detail::numbers);
}

std::vector<Outcome> predict_with_progress(std::size_t count, int jobs, const Predictor& predictor) {
  Progress progress(count);
  return predict_all(count, jobs, predictor, [&] { progress.advance(); });
}

std::vector<Outcome> predict_cases(const std::vector<Case>& cases, Fidelity fidelity, int jobs) {
  return predict_with_progress(cases.size(), jobs, [&](std::size_t i) { return predict_row(cases[i], fidelity); });
}

std::vector<Result> results_of(std::vector<Outcome> outcomes, ExitStatus& status) {
  std::vector<Result> results;
  for (Outcome& outcome : outcomes) {
    if (outcome.result) {
      results.push_back(std::move(*outcome.result));
      continue;
    }
    warn(outcome.error);
    if (status != ExitStatus::bad_input) {
      status = outcome.bad_input ? ExitStatus::bad_input : ExitStatus::prediction_failed;
    }
  }
  return results;
}

}  // namespace foretrain
