#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/words.hpp"
#include "model/cost/attention.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot_attention.hpp"

namespace foretrain {

namespace {

struct AttentionOptions {
  std::vector<std::int64_t> lengths = {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
  std::vector<std::string> kinds;
  bool constant_tokens = false;
};

/// Those asked for, or all that run on the GPU, standard attention first.
std::vector<AttentionKind> kinds_to_draw(const AttentionOptions& options, const Operator& op, const Gpu& gpu) {
  std::vector<AttentionKind> kinds;
  for (std::size_t i = 0; i < names_of<AttentionKind>.size(); ++i) {
    const auto kind = static_cast<AttentionKind>(i);
    Attention work = std::get<Attention>(op.work);
    work.kind = kind;
    const bool asked = std::find(options.kinds.begin(), options.kinds.end(), name(kind)) != options.kinds.end();
    if (!asked && (!options.kinds.empty() || kind == AttentionKind::flash)) continue;
    if (const auto unsupported = unsupported_attention(work, op.precision, gpu)) {
      if (asked)
        throw UsageError(fmt::format("plot attention: {}: {}; {}", name(kind), unsupported->wrong, unsupported->right));
      continue;
    }
    kinds.push_back(kind);
  }
  for (const std::string& kind : options.kinds) {
    if (std::ranges::find(names_of<AttentionKind>, kind) == names_of<AttentionKind>.end()) {
      throw UsageError(
          fmt::format("plot attention: --kinds {}: no such attention; standard, flash, memory_efficient, "
                      "flash_1, flash_2 or flash_3",
                      kind));
    }
  }
  return kinds;
}

AttentionFigure predict(const PlotOptions& shared, const AttentionOptions& options) {
  const Scenario scenario = load_scenario(shared.file(), shared.overrides);
  const auto* workload = std::get_if<OperatorWorkload>(&scenario.workload);
  const auto* work = workload ? std::get_if<Attention>(&workload->op.work) : nullptr;
  if (work == nullptr)
    throw UsageError(shared.file() + ": no attention operator; workload: { operator: { kind: attention, … } }");
  const Gpu& gpu = scenario.cluster.node.gpu;
  const Precision precision = workload->op.precision;
  AttentionFigure figure;
  figure.title = scenario.name;
  figure.passes = "forward and backward";
  figure.lengths = options.lengths;
  std::sort(figure.lengths.begin(), figure.lengths.end());
  figure.capacity = gpu.memory;
  const std::int64_t tokens = work->batch * work->query_length;
  if (options.constant_tokens) {  // longer ones would be more tokens
    std::erase_if(figure.lengths, [&](std::int64_t length) { return length > tokens; });
    if (figure.lengths.empty())
      throw UsageError(fmt::format("plot attention: --lengths: none is within {} tokens", tokens));
  }
  for (const AttentionKind kind : kinds_to_draw(options, workload->op, gpu)) {
    AttentionCurve curve{{std::string(name(kind)), {}}, {}};
    for (const std::int64_t length : figure.lengths) {
      Attention shape = *work;
      shape.kind = kind;
      shape.cached = false;  // both passes, of training
      shape.packing.reset();
      shape.query_length = shape.key_length = length;
      if (options.constant_tokens) shape.batch = std::max<std::int64_t>(tokens / length, 1);
      Seconds time;
      for (const bool backward : {false, true}) {
        shape.backward = backward;
        time += operator_cost({"", shape, precision, 1}, gpu, scenario.calibration).device;
      }
      const Bytes peak = attention_memory(shape, precision, gpu).peak;
      curve.times.push_back(peak <= gpu.memory ? std::optional(time) : std::nullopt);
      curve.memory.push_back(peak);
    }
    figure.curves.push_back(std::move(curve));
  }
  return figure;
}

}  // namespace

void add_plot_attention(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<AttentionOptions>();
  CLI::App* command =
      add_plot_command(plot, status,
                       {"attention", "time and memory of attention over the length, by algorithm", "FILE",
                        "a scenario with one attention operator", takes_overrides},
                       [options](const PlotOptions& shared) { return show(shared, predict(shared, *options), true); });
  command->add_option("--lengths", options->lengths, "sequence lengths (default: 128 to 32768)")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{10'000'000}));
  command->add_option("--kinds", options->kinds, "algorithms (default: all that run on the GPU)")->delimiter(',');
  command->add_flag("--constant-tokens", options->constant_tokens,
                    "shorter sequences come in larger batches: batch times length stays that of the scenario");
}

}  // namespace foretrain
