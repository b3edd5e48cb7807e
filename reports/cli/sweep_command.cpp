#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/seen_files.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "reports/cli/anchors.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/sweep_merge.hpp"
#include "reports/cli/sweep_rows.hpp"
#include "reports/cli/sweep_store.hpp"
#include "reports/cli/sweep_table.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"
#include "reports/result/csv.hpp"

namespace foretrain {

namespace {

struct SweepOptions {
  SweepInput input;
  std::string output;
  std::string shard;
  std::size_t slurm_jobs = 0;  ///< which run the sweep instead of this process
  Selection selection;
  Fidelity fidelity = Fidelity::flows;
  int jobs = 1;
};

Shard parse_shard(const std::string& text) {
  const std::vector<std::string> parts = split(text, '/');
  try {
    if (parts.size() == 2) {
      const std::int64_t count = parse_integer(parts[1], 1, 1'000'000);
      return {static_cast<std::size_t>(parse_integer(parts[0], 1, count)), static_cast<std::size_t>(count)};
    }
  } catch (const UnitError&) {
    // Said below, in the words of the option.
  }
  throw UsageError("--shard " + text + ": write I/N with I from 1 to N, such as 1/4");
}

/// Checks the command line before it reads or writes files.
void check(const SweepOptions& options) {
  namespace fs = std::filesystem;
  if (options.input.table.empty() == options.input.file.empty()) {
    throw UsageError("sweep: name either a scenario FILE (with --vary) or --cases CASES.csv");
  }
  require_plain_name(options.output);
  if (fs::is_directory(options.output)) {
    throw UsageError(options.output + ": this is a folder; name a file in it with -o");
  }
  std::error_code absent;
  for (const std::string& input : {options.input.file, options.input.table}) {
    if (fs::equivalent(input, options.output, absent) && fs::is_regular_file(input)) {
      throw UsageError(options.output + ": this is what the sweep reads; name another file with -o");
    }
  }
  const fs::path folder = fs::path(options.output).parent_path();
  if (!folder.empty() && !fs::is_directory(folder)) {
    throw UsageError(options.output + ": there is no such folder; make it, or choose another place with -o");
  }
  if (options.output.empty() && (options.slurm_jobs > 0 || !options.shard.empty())) {
    throw UsageError("sweep: shards need a place for their rows; name the table with -o");
  }
}

/// On an empty store, before there is another: what is wrong with its columns or the selection leaves nothing behind.
void check_table(const Selection& selection, const SweepIdentity& identity, const std::vector<std::string>& header) {
  SweepStore nothing("", identity, header);
  if (!selection.where.empty() || !selection.sort.empty()) check_selection(nothing, selection);
}

/// The file that keeps rows until the table is written; "" if they need not outlast this process.
std::string store_file(const SweepOptions& options, const Shard& shard) {
  if (!options.shard.empty()) return shard_file(options.output, shard);
  if (is_database(options.output)) return options.output;
  const bool device = std::filesystem::exists(options.output) && !std::filesystem::is_regular_file(options.output);
  return options.output.empty() || device ? "" : options.output + ".partial";
}

void predict_rows(const SweepOptions& options, const SweepRows& rows, const Shard& shard, SweepStore& store) {
  const FileView view;  // all rows are of the same files
  std::optional<MeasuredRuns> runs;
  const SweepInput& input = options.input;
  if (!input.anchor.empty()) runs = measured_runs(input.anchor, input.settings, options.fidelity, options.jobs);
  const std::vector<bool> finished = store.finished();
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < rows.count; ++i) {
    if (shard.has(i) && !finished[i]) left.push_back(i);
  }
  bring_together(left, rows);
  const TextTask predict = [&](std::size_t i) {
    const Case row = with_overrides({rows.case_of(left[i])}, input.settings).front();
    const Result result = runs ? predict_row_beside(*runs, row, options.fidelity) : predict_row(row, options.fidelity);
    return fmt::format("{}", fmt::join(predicted_cells(result), ","));
  };
  Progress progress(left.size());
  answer_all(left.size(), options.jobs, predict, [&](std::size_t i, Reply reply) {
    progress.advance();
    std::ranges::replace(reply.text, '\n', ' ');  // a table has one line per row, whatever an error says
    store.add(left[i], rows.cells_of(left[i]), reply);
  });
  store.commit();
}

ExitStatus tell_failures(const SweepOptions& options, SweepStore& store) {
  const auto say = [](const std::string& text) { fmt::print(stderr, "{}\n", printable(text)); };
  const std::size_t impossible = store.count(Reply::Kind::bad_input);
  const std::size_t failed = impossible + store.count(Reply::Kind::failure) + store.count(Reply::Kind::interrupted);
  const std::size_t left_out = options.selection.skip_impossible ? impossible : 0;
  if (failed > left_out) {
    say(fmt::format("foretrain: {} of {} rows infeasible or failed{}", failed - left_out, store.count(),
                    options.output.empty() ? "" : "; column predicted.error of " + options.output + " says why"));
  }
  const auto tell = [&](Reply::Kind kind, const char* what) {
    if (store.count(kind) == 0) return;
    say(fmt::format("{} {}:", store.count(kind), what));
    for (const std::string& reason : reasons(store, kind)) say("  " + wrap(reason, page_width() - 6, 6));
  };
  tell(Reply::Kind::bad_input, left_out > 0 ? "infeasible configurations, omitted" : "infeasible configurations");
  tell(Reply::Kind::failure, "failed");
  tell(Reply::Kind::interrupted, "interrupted; repeat the command to resume");
  return failed == left_out ? ExitStatus::success : ExitStatus::prediction_failed;
}

ExitStatus run(const SweepOptions& options) {
  check(options);
  const Shard shard = options.shard.empty() ? Shard() : parse_shard(options.shard);
  const SweepRows rows = sweep_rows(options.input);
  if (options.slurm_jobs > 0) {
    print(slurm_script(options.slurm_jobs, options.output));
    return ExitStatus::success;
  }
  const std::string file = store_file(options, shard);
  const bool is_result = !options.shard.empty() || is_database(options.output);
  const SweepIdentity identity = {fingerprint_of(rows, options.input, options.fidelity), rows.count};
  check_table(options.selection, identity, rows.header);
  ExitStatus status = ExitStatus::success;
  bool keep = is_result;
  {
    SweepStore store(file, identity, rows.header);
    if (const std::size_t known = store.count(); known > 0) warn(counted(known, "row") + " kept from an earlier run");
    predict_rows(options, rows, shard, store);
    if (!is_result && !options.output.empty()) write_table(store, options.selection, options.output);
    const bool shows = options.shard.empty() && (options.output.empty() || !file.empty());
    const std::string best = shows ? best_rows(store, options.selection, rows.varied) : "";
    if (!best.empty()) print_page(printable(best));
    status = tell_failures(options, store);
    keep = keep || store.count(Reply::Kind::interrupted) > 0;
  }
  if (!keep) remove_database(file);
  return status;
}

}  // namespace

void add_sweep(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<SweepOptions>();
  CLI::App* command =
      app.add_subcommand("sweep", "Predict all combinations of key values as a table; resume after an interruption");
  command->add_option("FILE", options->input.file, "the scenario to vary");
  add_variations(*command, options->input.variations,
                 "values of a key: KEY=V1,V2,…, KEY=A..B, KEY=A..B+STEP or KEY=A..BxFACTOR; keys that change together: "
                 "KEY,OTHER=V1:W1,V2:W2 (repeatable: all combinations)");
  add_text(*command, "--cases", options->input.table, "CASES.csv", "predict the rows of this table");
  add_text(
      *command, "-o,--output", options->output, "OUT.csv",
      "write all rows: .csv, .jsonl (one JSON object per line) or .sqlite (resumable); default: print the best rows");
  add_text(*command, "--shard", options->shard, "I/N",
           "predict every N-th row from row I into OUT.I-of-N.sqlite: one job of an array");
  add_number(*command, "--slurm", options->slurm_jobs, 1, 1'000'000,
             "print a Slurm script (`sbatch`) that runs the sweep as N array jobs");
  add_selection(*command, options->selection);
  add_text(*command, "--anchor", options->input.anchor, "RUNS.csv",
           "scale predictions to your measured runs of the same model");
  add_calibration(*command, options->input.settings);
  add_fidelity(*command, options->fidelity);
  add_overrides(*command, options->input.overrides);
  add_jobs(*command, options->jobs);
  add_sweep_merge(*command, status);
  command->callback([options, command, &status] {
    if (command->get_subcommands().empty()) status = run(*options);
  });
}

}  // namespace foretrain
