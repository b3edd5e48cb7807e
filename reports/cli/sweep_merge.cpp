#include "reports/cli/sweep_merge.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/sweep_table.hpp"

namespace foretrain {

namespace {

namespace fs = std::filesystem;

struct MergeOptions {
  std::string output;
  std::vector<std::string> shards;
  Selection selection;
  bool incomplete = false;
};

std::string without_extension(const std::string& path) { return fs::path(path).replace_extension().string(); }

/// 8 of "out.2-of-8.sqlite"; 0 of other names.
std::size_t count_of_shards(const std::string& file) {
  const std::size_t mark = file.rfind("-of-");
  std::size_t count = 0;
  if (mark != std::string::npos && file.ends_with(".sqlite")) {
    std::from_chars(file.data() + mark + 4, file.data() + file.size(), count);
  }
  return count;
}

/// The command line of this process behind the program's name, quoted, without what is about its jobs.
std::string own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string argument, text;
  std::getline(file, argument, '\0');
  while (std::getline(file, argument, '\0')) {
    if (argument == "--slurm" || argument == "--jobs") {
      std::getline(file, argument, '\0');  // its value
    } else if (!argument.starts_with("--slurm=") && !argument.starts_with("--jobs=")) {
      text += " " + shell_quoted(argument);
    }
  }
  return text;
}

std::vector<std::string> shards_of(const std::string& output) {
  const fs::path folder = fs::path(output).parent_path();
  const std::string beginning = fs::path(without_extension(output)).filename().string() + ".";
  std::vector<std::string> shards;
  std::error_code unseen;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, unseen)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(beginning) && count_of_shards(name) > 0) shards.push_back((folder / name).string());
  }
  std::ranges::sort(shards);
  return shards;
}

/// "3 of 6 rows are missing, in shards 3, 5 of 8".
std::string missing_rows(const std::vector<bool>& finished, std::size_t shards) {
  std::set<std::size_t> unfinished;
  std::size_t missing = 0;
  for (std::size_t row = 0; row < finished.size(); ++row) {
    if (finished[row]) continue;
    ++missing;
    unfinished.insert(row % std::max<std::size_t>(shards, 1) + 1);
  }
  const std::string where = shards > 0 ? fmt::format(", in shards {} of {}", fmt::join(unfinished, ", "), shards) : "";
  return fmt::format("{} of {} rows are missing{}", missing, finished.size(), where);
}

/// An empty store for the whole of which this is a shard.
SweepStore store_for_whole(const std::string& file, const SweepStore& shard) {
  std::vector<std::string> inputs = shard.columns();
  std::erase_if(inputs, [](const std::string& column) { return column.starts_with("predicted."); });
  return {file, shard.identity(), inputs};
}

ExitStatus run(const MergeOptions& options) {
  const std::vector<std::string> shards = options.shards.empty() ? shards_of(options.output) : options.shards;
  if (shards.empty()) {
    throw UsageError(
        fmt::format("sweep merge: there is no {} beside {}; a shard of `foretrain sweep … -o {}` writes it",
                    shard_file(options.output, {1, 2}), options.output, options.output));
  }
  const bool database = is_database(options.output);
  const std::string whole = database ? options.output + ".partial" : "";
  if (database && fs::exists(options.output)) const SweepStore replaced(options.output);  // else it is not a sweep's
  std::size_t failed = 0;
  {
    SweepStore all = store_for_whole(whole, SweepStore(shards.front()));
    for (const std::string& shard : shards) all.merge(shard);
    check_selection(all, options.selection);
    if (const std::vector<bool> finished = all.finished(); std::ranges::find(finished, false) != finished.end()) {
      const std::string missing = missing_rows(finished, count_of_shards(shards.front()));
      if (!options.incomplete) {
        throw std::runtime_error(missing + "; run these again, or take what there is with --incomplete");
      }
      warn(missing);
    }
    if (!database) write_table(all, options.selection, options.output);
    failed = all.count() - all.count(Reply::Kind::answer);
    if (options.selection.skip_impossible) failed -= all.count(Reply::Kind::bad_input);
  }
  if (database) {
    fs::remove(options.output + "-wal");
    fs::rename(whole, options.output);
  }
  return failed == 0 ? ExitStatus::success : ExitStatus::prediction_failed;
}

}  // namespace

std::string slurm_script(std::size_t jobs, const std::string& output) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  require_plain_name(program);  // a line end would leave the comment
  require_plain_name(output);
  return fmt::format(R"(#!/bin/sh
#SBATCH --job-name=foretrain
#SBATCH --array=1-{0}
# sbatch SCRIPT runs {0} jobs; more processors for each: sbatch --cpus-per-task=16 SCRIPT. Run again, it goes on where it
# stopped. Once all jobs are done, this makes the table:
#   {1} sweep merge {2}
cd {3} || exit
exec {1}{4} \
  --shard "$SLURM_ARRAY_TASK_ID/{0}" --jobs "${{SLURM_CPUS_PER_TASK:-1}}"
)",
                     jobs, shell_quoted(program), shell_quoted(output),
                     shell_quoted(std::filesystem::current_path().string()), own_arguments());
}

std::string shard_file(const std::string& output, const Shard& shard) {
  return fmt::format("{}.{}-of-{}.sqlite", without_extension(output), shard.number, shard.count);
}

bool is_database(const std::string& output) {
  const std::string extension = to_lower(fs::path(output).extension().string());
  return extension == ".sqlite" || extension == ".sqlite3" || extension == ".db";
}

void remove_database(const std::string& file) {
  std::error_code absent;
  fs::remove(file + "-wal", absent);
  fs::remove(file, absent);
}

void add_sweep_merge(CLI::App& sweep, ExitStatus& status) {
  const auto options = std::make_shared<MergeOptions>();
  CLI::App* command = sweep.add_subcommand("merge", "Merge the shards of a sweep into one table");
  command->add_option("OUT", options->output, "the table that the shards named with -o")->required();
  command->add_option("PART", options->shards, "databases of the shards (default: OUT.*-of-*.sqlite)");
  add_selection(*command, options->selection);
  command->add_flag("--incomplete", options->incomplete, "what there is, though rows are missing");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain
