#include <fmt/format.h>

#include "reports/cli/plot.hpp"
#include "reports/studies/server_map.hpp"

namespace foretrain {

namespace {

ExitStatus run(const PlotOptions& options, const MapKeys& keys) {
  std::vector<CsvTable> tables;
  for (const std::string& path : options.files) tables.push_back(parse_csv(read_text_file(path), path));
  const MapFigure map = map_figure(tables, keys);
  if (map.failed > 0) warn(fmt::format("{} of {} rows have no prediction", map.failed, map.predictions));
  return show(options, map, map.failed == 0);
}

}  // namespace

void add_plot_map(CLI::App& plot, ExitStatus& status) {
  const auto keys = std::make_shared<MapKeys>();
  CLI::App* command =
      add_plot_command(plot, status,
                       {"map", "when does a parameter server win? A heat map of what `foretrain sweep` wrote",
                        "RESULTS.csv", "tables with rings and parameter servers", many_inputs},
                       [keys](const PlotOptions& options) { return run(options, *keys); });
  command->add_option("--x", keys->x, "key across (default: cluster.network.nic_bandwidth, else what varies)")
      ->type_name("KEY");
  command->add_option("--y", keys->y, "key upwards (default: workload.collective.size, else what varies)")
      ->type_name("KEY");
  command
      ->add_option("--panels", keys->panels, "key of the panels (default: workload.collective.ranks, else what varies)")
      ->type_name("KEY");
}

}  // namespace foretrain
