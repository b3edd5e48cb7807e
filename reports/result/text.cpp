#include "reports/result/text.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "model/base/format.hpp"
#include "model/base/words.hpp"
#include "reports/print/names.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"
#include "reports/result/goodput_report.hpp"

namespace foretrain {

namespace {

constexpr int label_width = 14;

std::string heading(std::string_view title) { return fmt::format("\n{}\n", title); }

/// "  Step time     44.1 s", longer values wrapped under themselves.
std::string line(std::string_view label, std::string_view value) {
  const std::size_t length = display_width(label);
  const std::string padding(length < label_width ? label_width - length : 1, ' ');
  return fmt::format("{:{}}{}{}{}\n", "", page_indent, label, padding,
                     wrap(value, page_width() - page_indent - label_width, page_indent + label_width));
}

/// "deepseek-v3 · 671 B parameters · 37.6 B for each token".
std::string model_line(const Result& result) {
  const TrainResult* train = result.train();
  if (train == nullptr || train->model.empty()) return "";
  std::string text = fmt::format("{} · {} parameters", train->model, format_count(train->parameters));
  if (train->active_parameters < train->parameters) {
    text += fmt::format(" · {} for each token", format_count(train->active_parameters));
  }
  return line("Model", text);
}

/// What was predicted, a line for each part of it; an asterisk at what the scenario does not say.
std::string settings_section(const Result& result) {
  std::string text = model_line(result), values;
  bool defaults = false;
  for (std::size_t i = 0; i < result.settings.size(); ++i) {
    const Setting& s = result.settings[i];
    values += fmt::format("{}{}{}{}{}", values.empty() ? "" : " · ", s.name, s.name.empty() ? "" : " ", s.value,
                          s.by_default ? "*" : "");
    defaults = defaults || s.by_default;
    if (i + 1 < result.settings.size() && result.settings[i + 1].line == s.line) continue;
    text += line(s.line, values);
    values.clear();
  }
  if (defaults) text += line("", "* by default: the scenario says nothing of it");
  return text.empty() ? "" : text + "\n";
}

/// Said before anything else: the rest of the answer is about a step that cannot be.
std::string memory_verdict(const Result& result) {
  const TrainResult* train = result.train();
  if (train == nullptr || !(train->memory.capacity > Bytes(0)) || train->memory.fits()) return "";
  const MemoryFootprint& m = train->memory;
  const std::string left =
      m.fits_barely() ? fmt::format(", which leaves less than the headroom of {:.3g} %", 100.0 * m.headroom) : "";
  return wrap(fmt::format("{} into memory: the fullest GPU needs {} and has {}{}; `foretrain memory` says what would "
                          "help, `foretrain plan` which plans fit.",
                          m.fits_barely() ? "FITS BARELY" : "DOES NOT FIT", format_bytes(m.total()),
                          format_bytes(m.capacity), left),
              page_width(), 0) +
         "\n\n";
}

/// "  (likely 40.1 s to 47.9 s)" where the result states a range.
std::string likely_range(const Result& result) {
  if (!(result.uncertainty_high > result.uncertainty_low)) return "";
  return "  " + likely(format_seconds(result.uncertainty_low), format_seconds(result.uncertainty_high));
}

/// The kinds of measurements that a range is made of, and how much of it.
std::string range_line(const Result& result) {
  std::string text;
  for (const UncertaintyCause& cause : result.uncertainty_causes) {
    const bool whole = cause.share > 0.995;
    if (cause.share < 0.005) continue;
    text += fmt::format("{}{}{}", text.empty() ? "as measured of " : " · ", cause.what,
                        whole ? "" : fmt::format(" {:.0f} %", cause.share * 100.0));
  }
  return text.empty() ? "" : line("Range", text);
}

/// What measured runs have changed (--anchor).
std::string anchor_lines(const Result& result) {
  std::string text;
  for (const Constant& constant : result.provenance) {
    if (!constant.name.starts_with("anchor.")) continue;
    text += line(text.empty() ? "Anchored" : "",
                 fmt::format("{} × {:.3f}: {}", constant.name.substr(7), constant.value, constant.source));
  }
  return text;
}

std::string routing_line(const Result& result) {
  if (!result.routing) return "";
  const RoutingSpread& routing = *result.routing;
  return line("By routes",
              fmt::format("P50 {} · P90 {} · P99 {} of {} draws ({})", format_seconds(routing.p50),
                          format_seconds(routing.p90), format_seconds(routing.p99), routing.draws, routing.rule));
}

std::string headline(const Result& result, const TrainResult& train) {
  std::string text = line("Step time", format_seconds(train.step_time) + likely_range(result)) + range_line(result) +
                     anchor_lines(result) + routing_line(result);
  if (train.spread) {
    text += line("By chance", fmt::format("P50 {} · P90 {} · P99 {}", format_seconds(train.spread->p50),
                                          format_seconds(train.spread->p90), format_seconds(train.spread->p99)));
  }
  if (const auto& checkpoints = train.checkpoints) {
    text += line("Checkpoints",
                 fmt::format("{} every {} steps, which then take {} and {} on average; copied in {}, written in {}",
                             format_bytes(checkpoints->state), checkpoints->every,
                             format_seconds(checkpoints->step_time), format_seconds(checkpoints->mean_step_time),
                             format_seconds(checkpoints->copy), format_seconds(checkpoints->write)));
    if (checkpoints->beside_write > train.step_time * (1.0 + 1e-6)) {
      text += line("", fmt::format("over the cards that training uses: steps beside that take {}",
                                   format_seconds(checkpoints->beside_write)));
    }
  }
  std::string throughput = format_count(train.samples_per_second) + " samples/s";
  if (train.tokens_per_second > 0.0) {
    throughput += fmt::format(" · {} tokens/s · {} tokens/s per GPU", format_count(train.tokens_per_second),
                              format_count(train.tokens_per_second_per_gpu));
  }
  text += line("Throughput", throughput);
  text += line("Achieved", fmt::format("{} per GPU · MFU {}", format_rate(train.model_flops_per_second_per_gpu),
                                       format_percent(train.mfu)));
  if (train.time_to_train) {
    text += line("Training", length_text(train));
    if (train.cost_usd) text += line("Cost", cost_text(train));
  }
  if (!train.bottleneck.empty()) text += line("Bottleneck", train.bottleneck);
  return text;
}

std::string breakdown_section(const TrainResult& train) {
  const Breakdown& b = train.breakdown;
  if (!(b.total() > Seconds(0))) return "";
  TextTable table("lrrl");
  for (const auto& [label, key, part] : breakdown_parts) {
    const double share = b.*part / b.total();
    table.add_row({std::string(label), format_seconds(b.*part), format_percent(share), bar(share, bar_width)});
  }
  table.add_rule();
  table.add_row({"step", format_seconds(b.total()), format_percent(1.0)});
  return heading("Where the time goes") + table.text(page_indent);
}

/// "exchanging takes 0.45 of computing; 2·model/(bandwidth·batch·FLOPs) gives 0.31".
std::string ratio_lines(const CommunicationRatio& ratio, bool verbose) {
  std::string text = fmt::format("exchanging takes {:.3g} of computing; {} gives {:.3g}", ratio.simulated,
                                 communication_ratio_formula, ratio.formula);
  if (verbose) text += fmt::format(", as it leaves out {}", communication_ratio_leaves_out);
  return paragraph(text);
}

/// "gradients in buckets of 160 MB (megatron)".
std::string bucket_line(const TrainResult& train) {
  if (!train.buckets) return "";
  const auto& [size, rule] = *train.buckets;
  return fmt::format("{:{}}gradients {} ({})\n", "", page_indent,
                     is_finite(size) ? "in buckets of " + format_bytes(size) : "all at once", rule);
}

std::string communication_section(const TrainResult& train, bool verbose) {
  if (train.communication.empty()) return "";
  TextTable table("lrrrrl");
  const bool told =
      std::ranges::any_of(train.communication, [](const auto& row) { return !row.second.algorithm.empty(); });
  table.add_row({"", "total", "hidden", "exposed", "a GPU sends", told ? "by" : ""});
  for (const auto& [collective, time] : train.communication) {
    const Seconds hidden = time.total - time.exposed;  // less than a billionth is rounding
    table.add_row({collective, format_seconds(time.total),
                   format_seconds(hidden > 1e-9 * time.total ? hidden : Seconds(0.0)), format_seconds(time.exposed),
                   time.sent > Bytes(0.0) ? format_bytes(time.sent) : "", time.algorithm});
    if (collective != inside_layers || train.inside_layers.size() < 2) continue;
    for (const auto& [name, traffic] : train.inside_layers) {
      table.add_row({"  " + name, format_seconds(traffic.alone), "", "", format_bytes(traffic.sent)});
    }
  }
  return heading("Communication") + table.text(page_indent) + bucket_line(train) +
         (train.communication_to_compute ? ratio_lines(*train.communication_to_compute, verbose) : "");
}

std::string token_section(const TrainResult& train) {
  if (!train.token_use) return "";
  const TrainResult::TokenUse& use = *train.token_use;
  TextTable table("ll");
  table.add_row({"tokens", fmt::format("{:.0f} of {:.0f} computed are useful ({})", use.tokens, use.computed,
                                       format_percent(use.useful_share()))});
  if (use.images > 0.0) {
    table.add_row({"images", fmt::format("{:.2f}, {:.0f} visual tokens", use.images, use.visual)});
  }
  if (use.slowest_replica > Seconds(0)) {
    table.add_row(
        {"waiting", format_seconds(use.slowest_replica) + " a step for the replica with the longest samples"});
  }
  return heading("A mean sample") + table.text(page_indent);
}

std::string server_section(const TrainResult& train) {
  if (!train.parameter_server) return "";
  const ParameterServerResult& p = *train.parameter_server;
  TextTable table("ll");
  table.add_row({"fullest server", fmt::format("{:.2f} x the mean", p.imbalance)});
  table.add_row({"busy", fmt::format("busiest link {} · busiest server {}", format_percent(p.link_utilisation),
                                     format_percent(p.cpu_utilisation))});
  table.add_row({"alone", fmt::format("compute {} · link {} · server {}", format_seconds(p.compute_bound),
                                      format_seconds(p.link_bound), format_seconds(p.server_bound))});
  if (p.staleness) {
    const ParameterServerResult::Staleness& s = *p.staleness;
    table.add_row({"staleness", fmt::format("mean {:.1f} · p50 {:.0f} · p90 {:.0f} · p99 {:.0f} · most {:.0f} updates",
                                            s.mean, s.p50, s.p90, s.p99, s.max)});
  }
  return heading(fmt::format("Parameter servers: {}, {}", counted(p.workers, "worker"), counted(p.servers, "server"))) +
         table.text(page_indent);
}

/// "18 bytes per parameter before sharding".
std::string parameters_line(const TrainResult& train) {
  if (!(train.bytes_per_parameter > Bytes(0.0))) return "";
  const std::string text = fmt::format("{:.3g} bytes per parameter before sharding: weight, gradient and states",
                                       train.bytes_per_parameter.value());
  return paragraph(text);
}

std::string memory_section(const TrainResult& train) {
  const MemoryFootprint& m = train.memory;
  if (!(m.capacity > Bytes(0))) return "";
  TextTable table("lrl");
  for (const auto& [label, key, size] : footprint_parts) {
    table.add_row({std::string(label), format_bytes(m.*size), bar(m.*size / m.capacity, bar_width)});
  }
  return heading(fmt::format("Memory of the fullest GPU: {}, {} of {}", verdict(m), format_bytes(m.total()),
                             format_bytes(m.capacity))) +
         table.text(page_indent) + parameters_line(train);
}

/// `value` with four significant digits and its unit.
std::string constant_value(const Constant& constant) {
  return fmt::format("{:.4g}{}{}", constant.value, constant.unit.empty() ? "" : " ", constant.unit);
}

std::string provenance_section(const Result& result, bool verbose) {
  if (result.provenance.empty()) return "";
  std::array<int, names_of<ConstantKind>.size()> counts{};
  for (const Constant& constant : result.provenance) ++counts[static_cast<std::size_t>(constant.kind)];
  static constexpr std::array<std::string_view, counts.size()> kinds = {"from datasheets", "measured", "fitted",
                                                                        "assumed"};
  std::string of_kinds;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) of_kinds += fmt::format("{} {} {}", of_kinds.empty() ? ":" : ",", counts[i], kinds[i]);
  }
  const std::string text = counted(result.provenance.size(), "constant") + of_kinds;
  if (!verbose) return "\n" + line("Rests on", text + "; --verbose lists them with their sources");
  TextTable table("lrll");
  for (const Constant& c : result.provenance) {
    table.add_row({c.name, constant_value(c), std::string(name(c.kind)), c.source});
  }
  return heading("Rests on " + text) + table.text(page_indent);
}

/// What the trainer does, or is assumed to do where nobody says.
std::string traits_section(const Result& result, bool verbose) {
  const TrainResult* train = result.train();
  if (train == nullptr || train->traits.empty()) return "";
  const auto assumed = std::ranges::count(train->traits, Trait::From::assumed, &Trait::from);
  const std::string text = fmt::format("{} of {} traits of trainers", assumed, train->traits.size());
  if (!verbose) {
    return assumed > 0 ? line("Assumed", text + ", which nobody states; --verbose lists them all") : "";
  }
  static constexpr std::array<std::string_view, names_of<Trait::From>.size()> whose = {"stated", "the trainer's",
                                                                                       "assumed", "stated"};
  TextTable table("llll");
  for (const Trait& t : train->traits) {
    table.add_row({t.key, t.value, std::string(whose[static_cast<std::size_t>(t.from)]), t.source});
  }
  return heading(fmt::format("Trainer {}: assumed are {}", train->trainer, text)) + table.text(page_indent);
}

std::string warnings_section(const Result& result) {
  if (result.warnings.empty()) return "";
  std::string text = heading("Please note");
  for (const std::string& warning : result.warnings) {
    text += fmt::format("{:{}}- {}\n", "", page_indent, wrap(warning, page_width() - page_indent - 2, page_indent + 2));
  }
  return text;
}

/// "45 operators in 30 kernels: 12 fused, 3 folded; 1.2 MB between them".
std::string kernels_of(const ModelCallResult& call) {
  std::string text = counted(call.operators, "operator") + " in " + counted(call.kernels, "kernel");
  if (call.fused > 0) text += fmt::format(", {} fused", call.fused);
  if (call.folded > 0) text += fmt::format(", {} folded", call.folded);
  return text + fmt::format("; {} of results between them", format_bytes(call.intermediates));
}

std::string fabric_section(const std::string& scenario, const TrainResult& train) {
  if (!train.shared_fabric) return "";
  TextTable table("lrrr");
  table.add_row({"", "beside", "alone", "longer"});
  const auto add = [&](const std::string& job, Seconds beside, Seconds alone) {
    table.add_row({job, format_seconds(beside), format_seconds(alone), format_percent(beside / alone - 1.0)});
  };
  add(scenario, train.step_time, train.shared_fabric->alone);
  for (const auto& [other, step, alone] : train.shared_fabric->others) add(other, step, alone);
  return heading("Steps of the jobs on the fabric") + table.text(page_indent);
}

std::string execution_section(const TrainResult& train) {
  if (!train.execution) return "";
  const ModelCallResult& call = *train.execution;
  return heading(fmt::format("Execution: {}", name(call.execution))) +
         fmt::format("{:{}}a micro-batch: {}\n", "", page_indent, kernels_of(call));
}

std::string calls_section(const TasksResult& tasks) {
  if (tasks.calls.empty()) return "";
  std::string text = heading("One call of a model");
  TextTable table("llrrl");
  table.add_row({"", "execution", "front end", "device", "waits for"});
  for (const auto& [id, call] : tasks.calls) {
    table.add_row({id, std::string(name(call.execution)), format_seconds(call.host), format_seconds(call.device),
                   call.front_end_bound() ? "front end" : "device"});
  }
  text += table.text(page_indent);
  for (const auto& [id, call] : tasks.calls)
    text += fmt::format("{:{}}{}: {}\n", "", page_indent, id, kernels_of(call));
  return text;
}

std::string answer(const Result& result, const TrainResult& train, bool verbose) {
  return headline(result, train) + breakdown_section(train) + communication_section(train, verbose) +
         token_section(train) + server_section(train) + split_section(train) + goodput_section(train) +
         bill_section(train) + fabric_section(result.scenario, train) + memory_section(train) +
         execution_section(train);
}

std::string time_line(const Result& result) {
  return line("Time", format_seconds(result.time()) + likely_range(result)) + range_line(result);
}

std::string answer(const Result& result, const CollectiveResult& c, bool) {
  return time_line(result) + routing_line(result) +
         line("Bandwidth", fmt::format("{} algorithm · {} bus", format_bandwidth(c.algorithm_bandwidth),
                                       format_bandwidth(c.bus_bandwidth))) +
         line("Algorithm", c.chosen_algorithm);
}

std::string answer(const Result& result, const OperatorResult& op, bool) {
  std::string text = time_line(result);
  if (op.per_access) {
    text += line("Per access", format_seconds(*op.per_access));
    text += line("Bandwidth", fmt::format("{} over {}", format_bandwidth(op.bytes / op.time), format_bytes(op.bytes)));
  } else if (op.flops > Flops(0.0)) {
    text += line("Work", format_flops(op.flops) + " · " + format_bytes(op.bytes));
    text += line("Achieved", format_rate(op.flops / op.time) + " · " + format_bandwidth(op.bytes / op.time));
  } else if (op.bytes > Bytes(0.0)) {  // storage, data loading
    text += line("Work", format_bytes(op.bytes));
    text += line("Achieved", format_bandwidth(op.bytes / op.time));
  }
  text += line("Bound by", op.bound);
  if (op.memory) {
    text += line("Memory",
                 fmt::format("{} peak · {} kept for the backward pass · {} workspace", format_bytes(op.memory->peak),
                             format_bytes(op.memory->saved), format_bytes(op.memory->workspace)));
  }
  return text;
}

std::string answer(const Result& result, const TasksResult& tasks, bool) {
  TextTable table("lr");
  for (const auto& [id, finish] : tasks.finish) table.add_row({id, format_seconds(finish)});
  return time_line(result) + heading("Tasks finish at") + table.text(page_indent) + calls_section(tasks);
}

}  // namespace

std::string to_text(const Result& result, const TextOptions& options) {
  const std::string title = fmt::format("{}  [{}]", result.scenario, name(result.fidelity));
  const std::string numbers =
      std::visit([&](const auto& work) { return answer(result, work, options.verbose); }, result.work);
  return title + "\n\n" + memory_verdict(result) + settings_section(result) + numbers + warnings_section(result) +
         provenance_section(result, options.verbose) + traits_section(result, options.verbose);
}

}  // namespace foretrain
