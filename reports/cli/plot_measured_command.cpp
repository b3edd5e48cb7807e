// Pictures of folders that foretrain-gpu measured.
#include "reports/cli/plot.hpp"
#include "reports/measured/measured_figures.hpp"
#include "validate/fit/describe.hpp"

namespace foretrain {

ExitStatus plot_gemm(const PlotOptions& options) {
  const RawMeasurements raw = read_measurements(options.file());
  return draw(options, gemm_figure(predicted_points(raw, node_document(raw.machine, {})).points));
}

}  // namespace foretrain
