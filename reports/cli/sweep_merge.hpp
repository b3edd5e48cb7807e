// The shards of a sweep: their files, the script by which Slurm runs them, and `foretrain sweep merge`, which makes one
// table of them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "reports/cli/command.hpp"

namespace foretrain {

/// "2/8": every eighth row, the second first.
struct Shard {
  std::size_t number = 1;
  std::size_t count = 1;
  [[nodiscard]] bool has(std::size_t row) const { return row % count == number - 1; }
};

/// File of a shard's rows, for the sweep that goes to `output`: out.2-of-8.sqlite for out.csv.
std::string shard_file(const std::string& output, const Shard& shard);

/// The script that runs this process's own command as an array of Slurm, of so many shards: whatever else its command
/// line says, without --slurm and --jobs. Other schedulers run `--shard` with their own number of a job. `output`:
/// where the table goes. Throws UsageError for names that a script cannot hold.
std::string slurm_script(std::size_t jobs, const std::string& output);

/// Whether the output is to be a database, by its extension: .sqlite, .sqlite3 or .db.
bool is_database(const std::string& output);

/// Removes a database and its log.
void remove_database(const std::string& file);

void add_sweep_merge(CLI::App& sweep, ExitStatus& status);

}  // namespace foretrain
