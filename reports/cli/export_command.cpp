#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/base/files.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/options.hpp"
#include "reports/export/chakra_export.hpp"
#include "reports/export/exporter.hpp"
#include "reports/import/draft.hpp"
#include "reports/print/number.hpp"

namespace foretrain {

namespace {

struct ExportOptions {
  std::string file, output;
  std::vector<std::string> overrides;
};

/// Above the settings where the format has comments; reported on stderr in any case.
std::string with_remarks(const Exporter& exporter, const ExportedFile& file, const std::string& scenario) {
  std::vector<std::string> remarks;
  for (const std::string& line : file.unsaid) remarks.push_back("not in this file: " + line);
  for (const std::string& line : file.otherwise) remarks.push_back("framework default differs: " + line);
  if (!file.framework.empty()) {
    remarks.push_back(
        fmt::format("predicted for other software; for this trainer: --set plan.framework={}", file.framework));
  }
  std::ranges::for_each(remarks, warn);
  remarks.insert(remarks.begin(), fmt::format("Written by `foretrain export {} {}`.", exporter.word, scenario));
  const bool has_comments = !file.text.starts_with('{');
  return (has_comments ? as_comments(remarks) : "") + file.text;
}

void run_export(const Exporter& exporter, const ExportOptions& options) {
  const auto overrides = planned_overrides(options.file, options.overrides, Fidelity::flows);
  const ExportedFile file = export_scenario(exporter, load_scenario(options.file, overrides));
  write_or_print(options.output, with_remarks(exporter, file, options.file));
}

struct ChakraOptions {
  std::string file, folder;
  bool all_ranks = false;
  std::vector<std::string> overrides;
};

ExitStatus write_chakra(const ChakraOptions& options) {
  const std::filesystem::path folder(options.folder);
  if (std::filesystem::exists(folder) && !std::filesystem::is_directory(folder)) {
    throw UsageError(fmt::format("{} is a file; name a folder with -o", options.folder));
  }
  const auto overrides = planned_overrides(options.file, options.overrides, Fidelity::flows);
  const Scenario scenario = load_scenario(options.file, overrides);
  nlohmann::ordered_json ranks;
  const auto write = [&](const ChakraTrace& trace) {
    std::filesystem::create_directories(folder);  // not before the scenario is known to train
    const std::string file = fmt::format("step.{}.et", trace.rank);
    write_file((folder / file).string(), trace.bytes);
    ranks[file] = trace.ranks;
  };
  const ChakraRanks which = options.all_ranks ? ChakraRanks::all : ChakraRanks::of_classes;
  const std::string groups = write_chakra_traces(scenario, which, write);
  write_file((folder / "ranks.json").string(), ranks.dump() + "\n");
  write_file((folder / "groups.json").string(), groups);
  warn(fmt::format("{}: {}, ranks.json (the ranks of each trace), groups.json (the ranks of each process group)",
                   options.folder, counted(std::ssize(ranks), "trace")));
  return ExitStatus::success;
}

}  // namespace

void add_export(CLI::App& app, ExitStatus& status) {
  CLI::App* command =
      app.add_subcommand("export", "Write a scenario as the configuration of a framework, or as execution traces");
  command->require_subcommand(1);
  for (const Exporter& exporter : exporters()) {
    const auto options = std::make_shared<ExportOptions>();
    CLI::App* kind = command->add_subcommand(std::string(exporter.word), std::string(exporter.writes));
    kind->add_option("FILE", options->file, "a scenario file, or a name from `foretrain scenarios list`")->required();
    add_text(*kind, "-o,--output", options->output, "OUT", "file to write (default: standard output)");
    add_overrides(*kind, options->overrides);
    kind->callback([options, &exporter, &status] {
      run_export(exporter, *options);
      status = ExitStatus::success;
    });
  }
  auto [chakra, options] = add_command<ChakraOptions>(
      *command, "chakra", "execution traces of MLCommons Chakra, one for each class of ranks", status, write_chakra);
  chakra.add_option("FILE", options.file, "a scenario file, or a name from `foretrain scenarios list`")->required();
  add_text(chakra, "-o,--output", options.folder, "FOLDER", "where the traces go")->required();
  chakra.add_flag("--all-ranks", options.all_ranks, "a trace for each rank, as ASTRA-sim reads them");
  add_overrides(chakra, options.overrides);
}

}  // namespace foretrain
