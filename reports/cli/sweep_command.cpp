#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <unordered_map>

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
#include "reports/cli/workers.hpp"
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

/// What is to be predicted, and the columns that say so. Rows are made when they are asked for: there may be a million.
struct Sweep {
  std::vector<std::string> header;
  std::size_t rows = 0;
  std::function<Case(std::size_t row)> case_of;
  std::function<std::vector<std::string>(std::size_t row)> cells_of;  ///< as many as the header has
};

Sweep sweep_of_variations(const SweepOptions& options) {
  std::vector<Variation> variations;
  for (const std::string& text : options.variations) variations.push_back(parse_variation(text));
  // A file that is none would fail in every row; it is refused before anything is written.
  const YamlNode name = yaml_scalar(options.file, {options.file, 0, 0});
  cached_yaml_file(catalogue_file(CatalogueSection::run, Field(name, "FILE")).string());
  const auto all = std::make_shared<const Combinations>(options.file, options.overrides, variations);
  Sweep sweep{{"case", "base"},
              all->size(),
              [all](std::size_t row) { return all->at(row); },
              [all](std::size_t row) {
                const Case made = all->at(row);
                std::vector<std::string> cells = {made.name, made.base};
                for (const Override& change : made.overrides) cells.push_back(change.value);
                return cells;
              }};
  for (const Override& change : all->at(0).overrides) sweep.header.push_back(change.key);
  return sweep;
}

/// The table as it is, without the predictions of an earlier sweep.
Sweep sweep_of_table(const SweepOptions& options) {
  const auto cases = std::make_shared<std::vector<Case>>(read_cases(options.table));
  const auto cells = std::make_shared<std::vector<std::vector<std::string>>>();
  const CsvTable table = parse_csv(read_text_file(options.table), options.table);
  std::vector<std::size_t> columns;
  std::vector<std::string> header;
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    if (table.header[i].text.starts_with("predicted.")) continue;
    columns.push_back(i);
    header.push_back(table.header[i].text);
  }
  for (const CsvRow& row : table.rows) {
    std::vector<std::string>& own = cells->emplace_back();
    for (const std::size_t column : columns) own.push_back(row[column].text);
  }
  for (const std::string& text : options.overrides) {
    for (Case& row : *cases) row.overrides.push_back(parse_override(text));
  }
  return {std::move(header), cases->size(), [cases](std::size_t row) { return (*cases)[row]; },
          [cells](std::size_t row) { return (*cells)[row]; }};
}

/// Rows on the same hardware after each other, and among these, rows of the same plan: they have most in common, and
/// workers remember what they have worked out.
void bring_together(std::vector<std::size_t>& rows, const Sweep& sweep) {
  struct Place {
    std::size_t hardware = 0, plan = 0, row = 0;
    auto operator<=>(const Place&) const = default;
  };
  std::unordered_map<std::string, std::size_t> hardware, plans;
  std::vector<Place> places;
  const auto number_in = [](auto& known, const std::string& text) {
    return known.try_emplace(text, known.size()).first->second;
  };
  for (const std::size_t row : rows) {
    const Case made = sweep.case_of(row);
    std::string of_hardware = made.base, of_plan;
    for (const Override& change : made.overrides) {
      const bool of_layout = change.key.starts_with("plan") && !change.key.starts_with("plan.sync");
      if (change.key.starts_with("cluster")) of_hardware += "\n" + change.key + "=" + change.value;
      if (of_layout) of_plan += "\n" + change.key + "=" + change.value;
    }
    places.push_back({number_in(hardware, of_hardware), number_in(plans, of_plan), row});
  }
  std::ranges::sort(places);
  std::ranges::transform(places, rows.begin(), &Place::row);
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
  for (std::size_t row = 0; row < sweep.rows; ++row) {
    for (const std::string& cell : sweep.cells_of(row)) fingerprint.add(cell);
  }
  return fingerprint.value();
}

/// The cells that say why there is no prediction; a table has one line per row, whatever an error says.
std::string failed_line(std::string why) {
  std::replace(why.begin(), why.end(), '\n', ' ');
  return csv_line(failed_cells(why));
}

ExitStatus run(const SweepOptions& options) {
  if (options.table.empty() == options.file.empty()) {
    throw UsageError("sweep: name either a scenario FILE (with --vary) or --cases CASES.csv");
  }
  const Shard shard = parse_shard(options.shard);
  const Sweep sweep = options.table.empty() ? sweep_of_variations(options) : sweep_of_table(options);
  std::vector<std::string> header = sweep.header;
  header.insert(header.end(), predicted_columns().begin(), predicted_columns().end());
  SweepFile file(options.output, fingerprint_of(sweep, options), header);
  if (file.rows() > 0) warn(fmt::format("{} rows are there from an earlier run", file.rows()));
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < sweep.rows; ++i) {
    if (shard.has(i) && !file.has(i)) rows.push_back(i);
  }
  bring_together(rows, sweep);
  const TextTask predict = [&](std::size_t i) {
    const std::vector<Case> row = with_calibration({sweep.case_of(rows[i])}, options.calibration);
    return csv_line(predicted_cells(predict_row(row.front(), options.fidelity)));
  };
  Progress progress(rows.size());
  answer_all(rows.size(), options.jobs, predict, [&](std::size_t i, Reply reply) {
    progress.advance();
    const bool predicted = reply.kind == Reply::Kind::answer;
    file.add(rows[i],
             csv_line(sweep.cells_of(rows[i])) + "," + (predicted ? reply.text : failed_line(std::move(reply.text))));
  });
  file.finish();

  const std::size_t failed = file.failed();
  if (failed == 0) return ExitStatus::success;
  warn(fmt::format("{} of {} predictions failed; column predicted.error of {} says why", failed, file.rows(),
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
