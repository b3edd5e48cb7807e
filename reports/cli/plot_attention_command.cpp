#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/words.hpp"
#include "model/cost/attention.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/curves.hpp"

namespace foretrain {

namespace {

struct AttentionChart {
  CurveChart times;       ///< seconds by length, a curve for each algorithm; none where it does not fit into the device
  CurveChart memory;      ///< bytes at its peak
  double capacity = 0.0;  ///< of the device
};

/// All that run on the GPU, standard attention first.
std::vector<AttentionKind> kinds_to_draw(const Operator& op, const Gpu& gpu) {
  std::vector<AttentionKind> kinds;
  for (std::size_t i = 0; i < names_of<AttentionKind>.size(); ++i) {
    Attention work = std::get<Attention>(op.work);
    work.kind = static_cast<AttentionKind>(i);
    const bool runs = !unsupported_attention(work, op.precision, gpu);
    if (runs && work.kind != AttentionKind::flash) kinds.push_back(work.kind);
  }
  return kinds;
}

/// Of constant tokens none that would be more tokens.
std::vector<std::int64_t> lengths_of(const PlotOptions& options, std::int64_t tokens) {
  std::vector<std::int64_t> lengths = {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
  if (options.constant_tokens) std::erase_if(lengths, [&](std::int64_t length) { return length > tokens; });
  if (lengths.empty()) throw UsageError(fmt::format("plot attention: {} tokens are less than {}", tokens, 128));
  return lengths;
}

Seconds time_of(Attention shape, Precision precision, const Scenario& scenario) {
  Seconds time;
  for (const bool backward : {false, true}) {
    shape.backward = backward;
    time += operator_cost({"", shape, precision, 1}, scenario.cluster.node.gpu, scenario.calibration).device;
  }
  return time;
}

AttentionChart empty_chart(const std::string& name, const std::vector<std::int64_t>& lengths) {
  CurveChart times{.title = name + ", forward and backward", .axis = "sequence length (tokens)"};
  for (const std::int64_t length : lengths) {
    times.places.push_back(static_cast<double>(length));
    times.labels.push_back(std::to_string(length));
  }
  CurveChart memory = times;
  times.scale = {"time (ms)", 1e-3, [](double time) { return format_seconds(Seconds(time)); }};
  memory.scale = {"memory (GB)", 1e9, [](double size) { return format_bytes(Bytes(size)); }};
  return {std::move(times), std::move(memory)};
}

AttentionChart predict(const PlotOptions& options) {
  const Scenario scenario = load_scenario(options.file(), options.overrides);
  const auto* workload = std::get_if<OperatorWorkload>(&scenario.workload);
  const auto* work = workload ? std::get_if<Attention>(&workload->op.work) : nullptr;
  if (work == nullptr)
    throw UsageError(options.file() + ": no attention operator; workload: { operator: { kind: attention, … } }");
  const Gpu& gpu = scenario.cluster.node.gpu;
  const Precision precision = workload->op.precision;
  const std::int64_t tokens = work->batch * work->query_length;
  const std::vector<std::int64_t> lengths = lengths_of(options, tokens);
  AttentionChart chart = empty_chart(scenario.name, lengths);
  chart.capacity = gpu.memory.value();
  for (const AttentionKind kind : kinds_to_draw(workload->op, gpu)) {
    Curve times{std::string(name(kind)), {}}, memory = times;
    for (const std::int64_t length : lengths) {
      Attention shape = *work;
      shape.kind = kind;
      shape.cached = false;
      shape.packing.reset();
      shape.query_length = shape.key_length = length;
      if (options.constant_tokens) shape.batch = std::max<std::int64_t>(tokens / length, 1);
      shape.backward = true;
      const Bytes peak = attention_memory(shape, precision, gpu).peak;
      times.values.push_back(peak <= gpu.memory ? time_of(shape, precision, scenario).value() : NAN);
      memory.values.push_back(peak.value());
    }
    chart.times.curves.push_back(std::move(times));
    chart.memory.curves.push_back(std::move(memory));
  }
  return chart;
}

/// Length from which an algorithm takes less time than the first wherever both fit.
std::string crossover_sentence(const CurveChart& times, std::size_t curve) {
  const Curve &first = times.curves.front(), &later = times.curves[curve];
  std::optional<std::size_t> place;
  for (std::size_t i = times.places.size(); i-- > 0;) {
    if (std::isnan(first.values[i]) || std::isnan(later.values[i])) continue;
    if (!(later.values[i] < first.values[i])) break;
    place = i;
  }
  if (!place) return fmt::format("{} is not faster than {} at these lengths", later.name, first.name);
  if (*place == 0) return fmt::format("{} is faster than {} at every length", later.name, first.name);
  return fmt::format("{} is faster than {} from {} on", later.name, first.name, times.labels[*place]);
}

std::string to_text(const AttentionChart& attention) {
  std::string text = fmt::format("{}\n\n{}\n\n{}\n", attention.times.title,
                                 table_text(cells_of(attention.times, "time", "does not fit")),
                                 table_text(cells_of(attention.memory, "memory")));
  for (std::size_t c = 1; c < attention.times.curves.size(); ++c) {
    text += "  " + crossover_sentence(attention.times, c) + "\n";
  }
  return text;
}

Panel panel_of(CurveChart chart, const std::string& title) {
  chart.title = title;
  chart.scale.text = nullptr;
  Panel panel = to_panel(chart, 380, 330);
  panel.x.logarithmic = panel.y.logarithmic = true;
  return panel;
}

Figure to_figure(const AttentionChart& attention) {
  Panel memory = panel_of(attention.memory, "Peak memory");
  memory.levels.push_back(
      {.at = attention.capacity * 1e-9, .name = "the GPU has " + format_bytes(Bytes(attention.capacity))});
  return {.title = attention.times.title, .panels = {panel_of(attention.times, "Time"), std::move(memory)}};
}

}  // namespace

ExitStatus plot_attention(const PlotOptions& options) {
  const AttentionChart chart = predict(options);
  return show(options, to_figure(chart), to_text(chart));
}

}  // namespace foretrain
