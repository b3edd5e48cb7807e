#include <utility>

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot_goodput.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

GoodputFigure goodput_of(const PlotOptions& options) {
  GoodputFigure figure;
  for (const std::string& file : options.files) {
    Result result = predict(load_scenario(file, options.overrides), options.fidelity);
    if (!result.train() || !result.train()->goodput || !result.train()->goodput->intervals) {
      throw UsageError("plot goodput: " + file + " has no failures and checkpoints; state cluster.failures and " +
                       "workload.train.checkpoint");
    }
    figure.trainings.push_back(std::move(result));
  }
  return figure;
}

}  // namespace

void add_plot_goodput(CLI::App& plot, ExitStatus& status) {
  const PlotCommand command = {"goodput", "what failures leave of the time, over the interval between checkpoints",
                               "FILE", "scenarios with cluster.failures",
                               many_inputs | takes_overrides | takes_fidelity};
  add_plot_command(plot, status, command,
                   [](const PlotOptions& options) { return show(options, goodput_of(options), true); });
}

}  // namespace foretrain
