#include "reports/cli/sweep_merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/sweep_table.hpp"

namespace foretrain {

namespace {

namespace fs = std::filesystem;

struct MergeOptions {
  std::string output;
  std::vector<std::string> parts;
  Selection selection;
  bool incomplete = false;
};

std::string without_extension(const std::string& path) { return fs::path(path).replace_extension().string(); }

/// The shards of this output that lie beside it.
std::vector<std::string> parts_of(const std::string& output) {
  const fs::path folder = fs::path(output).parent_path();
  const std::string beginning = fs::path(without_extension(output)).filename().string() + ".";
  std::vector<std::string> parts;
  std::error_code unseen;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, unseen)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(beginning) || !name.ends_with(".sqlite")) continue;
    const std::string middle = name.substr(beginning.size(), name.size() - beginning.size() - 7);
    const bool of_shard =
        middle.find("-of-") != std::string::npos && middle.find_first_not_of("0123456789-of") == std::string::npos;
    if (of_shard) parts.push_back((folder / name).string());
  }
  std::ranges::sort(parts);
  return parts;
}

/// "3 and 5 of 8": shards of which a row is not there.
std::string unfinished_shards(const SweepStore& all, std::size_t shards) {
  std::vector<bool> unfinished(shards);
  for (std::size_t row = 0; row < all.identity().rows; ++row) {
    if (!all.has(row)) unfinished[row % shards] = true;
  }
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < unfinished.size(); ++i) {
    if (unfinished[i]) numbers.push_back(std::to_string(i + 1));
  }
  return fmt::format("{} of {}", fmt::join(numbers, ", "), shards);
}

/// An empty store for the whole of which this is a part.
SweepStore store_for_whole(const std::string& file, const SweepStore& part) {
  std::vector<std::string> inputs = part.columns();
  std::erase_if(inputs, [](const std::string& column) { return column.starts_with("predicted."); });
  return {file, {part.identity().fingerprint, part.identity().rows, {}}, inputs};
}

ExitStatus run(const MergeOptions& options) {
  const std::vector<std::string> parts = options.parts.empty() ? parts_of(options.output) : options.parts;
  if (parts.empty()) {
    throw UsageError(
        fmt::format("sweep merge: there is no {} beside {}; a shard of `foretrain sweep … -o {}` writes it",
                    shard_file(options.output, {1, 2}), options.output, options.output));
  }
  const bool database = is_database(options.output);
  const std::string whole = database ? options.output + ".partial" : "";
  if (database && fs::exists(options.output)) const SweepStore replaced(options.output);  // else it is not a sweep's
  const std::size_t shards = std::max<std::size_t>(1, SweepStore(parts.front()).identity().shard.count);
  std::size_t failed = 0;
  {
    SweepStore all = store_for_whole(whole, SweepStore(parts.front()));
    all.add_all(parts);
    check_selection(all, options.selection);
    const std::size_t finished = all.rows() - all.count(Reply::Kind::interrupted);
    if (finished < all.identity().rows) {
      const std::string missing = fmt::format("{} of {} rows are missing, in shards {}", all.identity().rows - finished,
                                              all.identity().rows, unfinished_shards(all, shards));
      if (!options.incomplete) {
        throw std::runtime_error(missing + "; run these again, or take what there is with --incomplete");
      }
      warn(missing);
    }
    if (!database) write_table(all, options.selection, options.output);
    failed = all.rows() - all.count(Reply::Kind::answer);
    if (options.selection.skip_impossible) failed -= all.count(Reply::Kind::bad_input);
  }
  if (database) {
    fs::remove(options.output + "-wal");
    fs::rename(whole, options.output);
  }
  return failed == 0 ? ExitStatus::success : ExitStatus::prediction_failed;
}

}  // namespace

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
  CLI::App* command = sweep.add_subcommand("merge", "the shards of a sweep as the table that one run would have made");
  command->add_option("OUT", options->output, "the table: what the shards were given with -o")->required();
  command->add_option("PART", options->parts, "the shards' databases (default: OUT.*-of-*.sqlite)");
  add_selection(*command, options->selection);
  command->add_flag("--incomplete", options->incomplete, "what there is, though rows are missing");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain
