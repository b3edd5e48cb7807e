#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/import/importer.hpp"

namespace foretrain {

void add_import(CLI::App& app, ExitStatus& status) {
  struct Options {
    std::string output;
    ImportInput input;
  };
  CLI::App* command =
      app.add_subcommand("import", "Import files of other tools as scenarios, hardware and tables of cases");
  command->require_subcommand(1);
  for (const Importer& importer : importers()) {
    const auto options = std::make_shared<Options>();
    const bool compares = importer.word == "kineto";
    CLI::App* kind =
        command->add_subcommand(std::string(importer.word), fmt::format("{}: {}", importer.becomes, importer.reads));
    kind->add_option("FILE", options->input.file, std::string(importer.reads))->required();
    add_text(*kind, "-o,--output", options->output, "FILE",
             fmt::format("where {} goes, instead of to the screen", importer.becomes));
    add_overrides(*kind, options->input.overrides);
    if (compares) {
      add_text(*kind, "--scenario", options->input.scenario, "SCENARIO",
               "what was profiled, to be predicted beside it");
      add_fidelity(*kind, options->input.fidelity);
    }
    kind->callback([options, &importer, &status] {
      options->input.text = read_imported_file(options->input.file);
      const std::string text = importer.read(options->input);
      if (options->output.empty()) {
        print(text);
      } else {
        write_file(options->output, text);
      }
      status = ExitStatus::success;
    });
  }
}

}  // namespace foretrain
