#include "reports/cli/plots.hpp"
namespace foretrain {
void add_plot_bandwidth(CLI::App&, ExitStatus&) {}
}  // namespace foretrain
