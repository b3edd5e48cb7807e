// The subcommands of `foretrain plot` that have a file of their own.
#pragma once

#include <CLI/CLI.hpp>

#include "reports/cli/command.hpp"

namespace foretrain {

void add_plot_map(CLI::App& plot, ExitStatus& status);
void add_plot_bandwidth(CLI::App& plot, ExitStatus& status);
void add_plot_latency(CLI::App& plot, ExitStatus& status);
void add_plot_replay(CLI::App& plot, ExitStatus& status);
void add_plot_memory(CLI::App& plot, ExitStatus& status);
void add_plot_timeline(CLI::App& plot, ExitStatus& status);
void add_plot_attention(CLI::App& plot, ExitStatus& status);
void add_plot_roofline(CLI::App& plot, ExitStatus& status);
/// gemm, curves, busbw and accuracy: of folders that foretrain-gpu measured.
void add_plot_measured(CLI::App& plot, ExitStatus& status);

}  // namespace foretrain
