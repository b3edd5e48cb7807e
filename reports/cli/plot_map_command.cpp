#include <fmt/format.h>

#include "reports/cli/plot.hpp"
#include "reports/studies/server_map.hpp"

namespace foretrain {

ExitStatus plot_map(const PlotOptions& options) {
  std::vector<CsvTable> tables;
  for (const std::string& path : options.files) tables.push_back(parse_csv(read_text_file(path), path));
  const MapFigure map = map_figure(tables, {options.x, options.y, options.panels});
  if (map.failed > 0) warn(fmt::format("{} of {} rows have no prediction", map.failed, map.predictions));
  return show(options, map, map.failed == 0);
}

}  // namespace foretrain
