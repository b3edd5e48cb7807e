#include <fmt/format.h>

#include <algorithm>

#include "model/base/csv.hpp"
#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/cases.hpp"
#include "model/scenario/catalogue.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/sweep_file.hpp"
#include "reports/cli/vary.hpp"
#include "reports/csv.hpp"
#include "reports/names.hpp"

namespace foretrain {

namespace {

struct SweepOptions {
  std::string file;
  std::string table;
  std::vector<std::string> variations;
  std::vector<std::string> overrides;
  std::string output;
  std::string shard;
  std::string calibration;
  Fidelity fidelity = Fidelity::flows;
  int jobs = 1;
};

/// What is to be predicted, and the columns that say so.
struct Sweep {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> cells;  ///< one row per case, as long as the header
  std::vector<Case> cases;
};

Sweep sweep_of_variations(const SweepOptions& options) {
  std::vector<Variation> variations;
  for (const std::string& text : options.variations) variations.push_back(parse_variation(text));
  // A file that is none would fail in every row; it is refused before anything is written.
  const YamlNode name = yaml_scalar(options.file, {options.file, 0, 0});
  cached_yaml_file(catalogue_file(CatalogueSection::run, Field(name, "FILE")).string());
  Sweep sweep{{"case", "base"}, {}, combinations(options.file, options.overrides, variations)};
  for (const Override& change : sweep.cases.front().overrides) sweep.header.push_back(change.key);
  for (const Case& row : sweep.cases) {
    std::vector<std::string> cells = {row.name, row.base};
    for (const Override& change : row.overrides) cells.push_back(change.value);
    sweep.cells.push_back(std::move(cells));
  }
  return sweep;
}

/// The table as it is, without the predictions of an earlier sweep.
Sweep sweep_of_table(const SweepOptions& options) {
  Sweep sweep{{}, {}, read_cases(options.table)};
  const CsvTable table = parse_csv(read_text_file(options.table), options.table);
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    if (table.header[i].text.starts_with("predicted.")) continue;
    columns.push_back(i);
    sweep.header.push_back(table.header[i].text);
  }
  for (const CsvRow& row : table.rows) {
    std::vector<std::string>& cells = sweep.cells.emplace_back();
    for (const std::size_t column : columns) cells.push_back(row[column].text);
  }
  for (const std::string& text : options.overrides) {
    for (Case& row : sweep.cases) row.overrides.push_back(parse_override(text));
  }
  return sweep;
}

/// "2/8": every eighth row, the second first.
struct Shard {
  std::size_t number = 1;
  std::size_t count = 1;
  [[nodiscard]] bool has(std::size_t row) const { return row % count == number - 1; }
};

Shard parse_shard(const std::string& text) {
  if (text.empty()) return {};
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

std::uint64_t fingerprint_of(const Sweep& sweep, const SweepOptions& options) {
  Fingerprint fingerprint;
  fingerprint.add_identity("/proc/self/exe");
  fingerprint.add_folder(data_directory().string());
  if (std::filesystem::exists(options.file)) fingerprint.add(read_text_file(options.file));
  if (!options.calibration.empty()) fingerprint.add(read_text_file(options.calibration));
  fingerprint.add(name(options.fidelity));
  for (const std::string& text : options.overrides) fingerprint.add(text);
  for (const auto& row : sweep.cells) {
    for (const std::string& cell : row) fingerprint.add(cell);
  }
  return fingerprint.value();
}

std::vector<std::string> row_cells(std::vector<std::string> cells, const Outcome& outcome) {
  // A table has one line per row, whatever an error says.
  std::string why = outcome.error;
  std::replace(why.begin(), why.end(), '\n', ' ');
  const std::vector<std::string> predicted = outcome.result ? predicted_cells(*outcome.result) : failed_cells(why);
  cells.insert(cells.end(), predicted.begin(), predicted.end());
  return cells;
}

ExitStatus run(const SweepOptions& options) {
  if (options.table.empty() == options.file.empty()) {
    throw UsageError("sweep: name either a scenario FILE (with --vary) or --cases CASES.csv");
  }
  const Shard shard = parse_shard(options.shard);
  Sweep sweep = options.table.empty() ? sweep_of_variations(options) : sweep_of_table(options);
  sweep.cases = with_calibration(std::move(sweep.cases), options.calibration);
  std::vector<std::string> header = sweep.header;
  header.insert(header.end(), predicted_columns().begin(), predicted_columns().end());
  SweepFile file(options.output, fingerprint_of(sweep, options), header);
  if (!file.rows().empty()) warn(fmt::format("{} rows are there from an earlier run", file.rows().size()));
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < sweep.cases.size(); ++i) {
    if (shard.has(i) && !file.rows().contains(i)) rows.push_back(i);
  }
  const Predictor predictor = [&](std::size_t i) { return predict_row(sweep.cases[rows[i]], options.fidelity); };
  predict_with_progress(rows.size(), options.jobs, predictor, [&](std::size_t i, const Outcome& outcome) {
    file.add(rows[i], row_cells(sweep.cells[rows[i]], outcome));
  });
  file.finish();

  const auto failed = static_cast<std::size_t>(std::count_if(
      file.rows().begin(), file.rows().end(), [](const auto& row) { return !row.second.back().empty(); }));
  if (failed == 0) return ExitStatus::success;
  warn(fmt::format("{} of {} predictions failed; column predicted.error of {} says why", failed, file.rows().size(),
                   options.output));
  return ExitStatus::prediction_failed;
}

}  // namespace

void add_sweep(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<SweepOptions>();
  CLI::App* command =
      app.add_subcommand("sweep", "many predictions at once, as a table; goes on where it was interrupted");
  command->add_option("FILE", options->file, "the scenario to vary");
  add_variations(*command, options->variations,
                 "values that a key takes (repeatable: all combinations): KEY=V1,V2,… or KEY=A..B, KEY=A..B+STEP, "
                 "KEY=A..BxFACTOR");
  command->add_option("--cases", options->table, "predict the rows of this table instead")->type_name("CASES.csv");
  command->add_option("-o,--output", options->output, "where the table goes")->type_name("OUT.csv")->required();
  command->add_option("--shard", options->shard, "only every N-th row, beginning with the I-th: one job of an array")
      ->type_name("I/N");
  add_calibration(*command, options->calibration);
  add_fidelity(*command, options->fidelity);
  add_overrides(*command, options->overrides);
  add_jobs(*command, options->jobs);
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain
