#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plots.hpp"
#include "reports/map.hpp"

namespace foretrain {

namespace {

struct MapCommand {
  std::vector<std::string> tables;
  MapKeys keys;
  std::string output;
};

ExitStatus run(const MapCommand& command) {
  std::vector<CsvTable> tables;
  for (const std::string& path : command.tables) tables.push_back(parse_csv(read_text_file(path), path));
  const MapFigure figure = map_figure(tables, command.keys);
  if (!command.output.empty()) write_file(command.output, map_svg(figure));
  print(to_text(figure));
  if (figure.failed == 0) return ExitStatus::success;
  warn(fmt::format("{} of {} rows have no prediction", figure.failed, figure.predictions));
  return ExitStatus::prediction_failed;
}

}  // namespace

void add_plot_map(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<MapCommand>();
  CLI::App* command =
      plot.add_subcommand("map", "when does a parameter server win? A heat map of what `foretrain sweep` wrote");
  command->add_option("RESULTS.csv", options->tables, "tables with rings and parameter servers")->required();
  command->add_option("--x", options->keys.x, "key across (default: cluster.network.nic_bandwidth)")->type_name("KEY");
  command->add_option("--y", options->keys.y, "key upwards (default: workload.collective.size)")->type_name("KEY");
  command->add_option("--panels", options->keys.panels, "key of the panels (default: workload.collective.ranks)")
      ->type_name("KEY");
  command->add_option("-o,--output", options->output, "draw it as well")->type_name("OUT.svg");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain
