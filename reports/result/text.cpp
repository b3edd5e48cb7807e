#include "reports/result/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "model/base/format.hpp"
#include "model/base/words.hpp"
#include "reports/print/names.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

std::string heading(std::string_view title) { return fmt::format("\n{}\n", title); }

/// Comes first: the rest of the answer is about a step that cannot run.
std::string memory_verdict(const Result& result) {
  const TrainResult* train = result.train();
  if (train == nullptr || !(train->memory.capacity > Bytes(0)) || train->memory.fits()) return "";
  const MemoryFootprint& m = train->memory;
  const std::string rule = m.fits_barely() ? fmt::format("; {:.3g} % should stay free", 100.0 * m.headroom) : "";
  return wrap(fmt::format("{} IN MEMORY: {} needed per GPU, {} available{}. `foretrain memory` lists remedies, "
                          "`foretrain plan` plans that fit.",
                          m.fits_barely() ? "BARELY FITS" : "DOES NOT FIT", format_bytes(m.total()),
                          format_bytes(m.capacity), rule),
              page_width(), 0) +
         "\n\n";
}

/// "uncertainty from: unspecified framework 85 %, inter-node collectives 15 %".
std::string uncertainty_line(const Result& result) {
  std::string text;
  for (const UncertaintyCause& cause : result.uncertainty_causes) {
    if (cause.share < 0.005) continue;
    const std::string share = cause.share > 0.995 ? "" : fmt::format(" {:.0f} %", cause.share * 100.0);
    text += fmt::format("{}{}{}", text.empty() ? "uncertainty from: " : ", ", cause.what, share);
  }
  return text.empty() ? "" : labelled("", text);
}

/// Changes by measured runs (--anchor).
std::string anchor_lines(const Result& result) {
  std::string text;
  for (const Constant& constant : result.provenance) {
    if (!constant.name.starts_with("anchor.")) continue;
    text += labelled(text.empty() ? "Anchored" : "",
                     fmt::format("{} × {:.3f} {}", constant.name == "anchor.network" ? "network" : "compute",
                                 constant.value, constant.source));
  }
  return text;
}

std::string routing_line(const Result& result) {
  if (!result.routing) return "";
  const RoutingSpread& routing = *result.routing;
  return labelled("Routing",
                  fmt::format("P50 {} · P90 {} · P99 {} over {} draws ({})", format_seconds(routing.p50),
                              format_seconds(routing.p90), format_seconds(routing.p99), routing.draws, routing.rule));
}

/// "77.9 of 85.9 GB (fits)".
std::string use_of(const MemoryFootprint& memory) {
  return fmt::format("{} ({})", of_capacity(memory.total(), memory.capacity), verdict(memory));
}

/// "300 B tokens".
std::string training_length(const Result& result) {
  const auto length = std::ranges::find(result.settings, "training length", &Setting::name);
  return length == result.settings.end() ? "" : length->value;
}

/// "exposed communication (36 % of the step, threshold 30 %)".
std::string bottleneck_text(const TrainResult& train) {
  const auto text = [&](std::string_view name, Seconds time, const std::string& note) {
    return fmt::format("{} ({:.0f} % of the step{})", name, 100.0 * (time / train.breakdown.total()), note);
  };
  for (const IdlePart& part : idle_parts) {
    if (part.name == train.bottleneck)
      return text(std::ranges::find(breakdown_parts, part.time, &BreakdownPart::time)->name, train.breakdown.*part.time,
                  fmt::format(", threshold {:.0f} %", 100.0 * part.limit));
  }
  const auto* const part = std::ranges::find(breakdown_parts, train.bottleneck, &BreakdownPart::name);
  return part == breakdown_parts.end() ? train.bottleneck : text(part->name, train.breakdown.*part->time, "");
}

std::string headline(const Result& result, const TrainResult& train, bool verbose) {
  std::string text = labelled("Step time", format_seconds(train.step_time) + interval_of(result)) +
                     uncertainty_line(result) + anchor_lines(result) + routing_line(result);
  if (train.spread) {
    text += labelled("Percentiles", fmt::format("P50 {} · P90 {} · P99 {}", format_seconds(train.spread->p50),
                                                format_seconds(train.spread->p90), format_seconds(train.spread->p99)));
  }
  if (const auto& checkpoints = train.checkpoints) {
    const std::string parts = verbose ? fmt::format(" · copy {}, write {}", format_seconds(checkpoints->copy),
                                                    format_seconds(checkpoints->write))
                                      : "";
    text += labelled("Checkpoints",
                     fmt::format("{} every {} steps · checkpoint step {}, mean {}{}", format_bytes(checkpoints->state),
                                 checkpoints->every, format_seconds(checkpoints->step_time),
                                 format_seconds(checkpoints->mean_step_time), parts));
    if (verbose && checkpoints->beside_write > train.step_time * (1.0 + 1e-6)) {
      text += labelled("", fmt::format("steps during a write over the training NICs take {}",
                                       format_seconds(checkpoints->beside_write)));
    }
  }
  std::string throughput = format_count(train.samples_per_second) + " samples/s";
  if (train.tokens_per_second > 0.0) {
    throughput += fmt::format(" · {} tokens/s · {} tokens/s per GPU", format_count(train.tokens_per_second),
                              format_count(train.tokens_per_second_per_gpu));
  }
  text += labelled("Throughput", throughput);
  const FlopsPerSecond reached = train.model_flops_per_second_per_gpu;
  const std::string peak =
      train.mfu > 0.0 && reached > FlopsPerSecond(0.0) ? " of " + format_rate(reached / train.mfu) : "";
  text += labelled("MFU", fmt::format("{}{} · {} per GPU", format_percent(train.mfu), peak, format_rate(reached)));
  if (train.mfu > train.breakdown.compute / train.step_time) {
    text += labelled("", "counts FLOPs of direct convolution; Winograd kernels need fewer");
  }
  if (train.time_to_train) {
    text += labelled("Time to train", length_text(train, training_length(result)));
    if (train.cost_usd) text += labelled("Cost", cost_text(train));
  }
  if (!verbose) text += whole_training_lines(train);
  if (train.memory.capacity > Bytes(0)) text += labelled("Peak memory", use_of(train.memory));
  if (!train.bottleneck.empty()) text += labelled("Bottleneck", bottleneck_text(train));
  return text;
}

/// " assumed" behind a host overhead that is nothing but the assumed constant of a step.
std::string_view note_on(const BreakdownPart& part, const Result& result) {
  if (part.time != &Breakdown::host_overhead) return "";
  const auto step = std::ranges::find(result.provenance, "host.step_us", &Constant::name);
  const bool assumed = step != result.provenance.end() && step->kind == ConstantKind::assumption;
  return assumed && result.train()->breakdown.host_overhead < 1.01e-6 * Seconds(step->value)
             ? " assumed: Python between steps"
             : "";
}

/// The parts of the step; --verbose adds those below 0.05 %, and the sum.
std::string breakdown_section(const Result& result, bool verbose) {
  const Breakdown& b = result.train()->breakdown;
  if (!(b.total() > Seconds(0))) return "";
  TextTable table("lrrl");
  for (const BreakdownPart& part : breakdown_parts) {
    const Seconds time = b.*part.time;
    const double share = time / b.total();
    if (!verbose && share < least_share) continue;
    table.add_row({std::string(part.name), format_seconds(time), format_percent(share),
                   fmt::format("{}{}", bar(share, bar_width), note_on(part, result))});
  }
  if (verbose) {
    table.add_rule();
    table.add_row({"step", format_seconds(b.total()), format_percent(1.0)});
  }
  return heading("Where the step's time goes") + table.text(page_indent);
}

std::string token_section(const TrainResult& train) {
  if (!train.token_use) return "";
  const TrainResult::TokenUse& use = *train.token_use;
  TextTable table("ll");
  table.add_row({"tokens", fmt::format("{:.0f} useful of {:.0f} computed ({})", use.tokens, use.computed,
                                       format_percent(use.useful_share()))});
  if (use.images > 0.0) {
    table.add_row({"images", fmt::format("{:.2f}, {:.0f} visual tokens", use.images, use.visual)});
  }
  if (use.slowest_replica > Seconds(0)) {
    table.add_row({"imbalance",
                   format_seconds(use.slowest_replica) + " a step waiting for the replica with the longest samples"});
  }
  return heading("Mean sample") + table.text(page_indent);
}

std::string memory_section(const TrainResult& train) {
  const MemoryFootprint& m = train.memory;
  if (!(m.capacity > Bytes(0))) return "";
  TextTable table("lrl");
  for (const auto& [label, key, size] : footprint_parts) {
    table.add_row({std::string(label), format_bytes(m.*size), bar(m.*size / m.capacity, bar_width)});
  }
  const std::string text = heading("Peak GPU memory: " + use_of(m)) + table.text(page_indent);
  if (!(train.bytes_per_parameter > Bytes(0.0))) return text;
  return text + paragraph(fmt::format("{:.3g} bytes per parameter (weight, gradient, states) before sharding",
                                      train.bytes_per_parameter.value()));
}

/// `value` with four significant digits and its unit.
std::string constant_value(const Constant& constant) {
  return fmt::format("{:.4g}{}{}", constant.value, constant.unit.empty() ? "" : " ", constant.unit);
}

/// By ConstantKind.
constexpr std::array<std::string_view, names_of<ConstantKind>.size()> origins = {"datasheet", "measured", "fitted",
                                                                                 "assumed"};

bool is_stated(const Constant& constant) { return constant.source.starts_with("stated in "); }

/// Whether the scenario states a network's value in place of this one of the node's file.
bool is_replaced(const Constant& constant, const std::vector<Constant>& all) {
  const std::size_t network = constant.name.find(".network.");
  if (network == std::string::npos || is_stated(constant)) return false;
  const std::string stated = "cluster" + constant.name.substr(network);
  return std::ranges::any_of(all, [&](const Constant& one) { return one.name == stated && is_stated(one); });
}

/// Datasheet values, measurements, fits and assumptions that the prediction used.
std::string constants_section(const Result& result, bool verbose) {
  if (result.provenance.empty()) return "";
  std::array<int, names_of<ConstantKind>.size()> counts{};
  for (const Constant& constant : result.provenance) ++counts[static_cast<std::size_t>(constant.kind)];
  std::string of_kinds;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) of_kinds += fmt::format("{}{} {}", of_kinds.empty() ? "" : ", ", counts[i], origins[i]);
  }
  const std::string title = fmt::format("Model constants: {} ({})", result.provenance.size(), of_kinds);
  if (!verbose) return heading(wrap(title, page_width(), 2));
  std::vector<std::pair<std::string, TextTable>> by_source;
  for (const Constant& c : result.provenance) {
    if (is_replaced(c, result.provenance)) continue;
    auto known = std::ranges::find(by_source, c.source, [](const auto& one) { return one.first; });
    if (known == by_source.end()) known = by_source.insert(known, {c.source, TextTable("lrl")});
    known->second.add_row(
        {c.name, constant_value(c), is_stated(c) ? "stated" : std::string(origins[static_cast<std::size_t>(c.kind)])});
  }
  std::string text = heading(title);
  for (const auto& [source, table] : by_source) text += paragraph(source) + table.text(2 * page_indent);
  return text;
}

/// Framework settings by origin: scenario, framework file, or default.
std::string framework_section(const Result& result, bool verbose) {
  const TrainResult* train = result.train();
  if (train == nullptr || train->framework_settings.empty()) return "";
  const auto assumed =
      std::ranges::count(train->framework_settings, ResolvedSetting::From::assumed, &ResolvedSetting::from);
  const std::string title =
      fmt::format("Framework settings that apply: {}, {} at default", train->framework_settings.size(),
                  assumed == std::ssize(train->framework_settings) ? "all" : std::to_string(assumed));
  if (!verbose) return wrap(title + " (--verbose lists all)", page_width(), 2) + "\n";
  static constexpr std::array<std::string_view, names_of<ResolvedSetting::From>.size()> decided_by = {
      "stated", "framework", "default", "--set"};
  std::string text = heading(fmt::format("{} ({})", title, train->trainer));
  for (const ResolvedSetting& t : train->framework_settings) {
    text += paragraph(fmt::format("{} = {} ({})", t.key, t.value, decided_by[static_cast<std::size_t>(t.from)]));
    if (t.source.empty()) continue;
    text += fmt::format("{:{}}{}\n", "", 2 * page_indent, wrap(t.source, page_width() - 4, 2 * page_indent));
  }
  return text;
}

/// Without --verbose no verdicts and remedies of memory, for which memory_verdict() names a command.
std::string warnings_section(const Result& result, bool verbose) {
  if (result.warnings.empty()) return "";
  const bool fits = result.train() == nullptr || result.train()->memory.fits();
  std::string text;
  for (const std::string& warning : result.warnings) {
    static constexpr std::array of_memory = {"fits ", "does not fit"};
    const auto begins = [&](const char* words) { return warning.starts_with(words); };
    if (!fits && !verbose && std::ranges::any_of(of_memory, begins)) continue;
    if (text.empty()) text = heading("Warnings");
    text += fmt::format("{:{}}- {}\n", "", page_indent, wrap(warning, page_width() - page_indent - 2, page_indent + 2));
  }
  return text;
}

/// "45 operators in 30 kernels, 12 fused, 3 folded; intermediate results 1.2 MB".
std::string kernels_of(const ModelCallResult& call) {
  std::string text = counted(call.operators, "operator") + " in " + counted(call.kernels, "kernel");
  if (call.fused > 0) text += fmt::format(", {} fused", call.fused);
  if (call.folded > 0) text += fmt::format(", {} folded", call.folded);
  return text + fmt::format("; intermediate results {}", format_bytes(call.intermediates));
}

std::string fabric_section(const std::string& scenario, const TrainResult& train) {
  if (!train.shared_fabric) return "";
  TextTable table("lrrr");
  table.add_row({"", "shared", "alone", "slowdown"});
  const auto add = [&](const std::string& job, Seconds shared, Seconds alone) {
    table.add_row({job, format_seconds(shared), format_seconds(alone), format_percent(shared / alone - 1.0)});
  };
  add(scenario, train.step_time, train.shared_fabric->alone);
  for (const auto& [other, step, alone] : train.shared_fabric->others) add(other, step, alone);
  return heading("Step time of each job on the fabric") + table.text(page_indent);
}

std::string execution_section(const TrainResult& train) {
  if (!train.execution) return "";
  const ModelCallResult& call = *train.execution;
  return heading(fmt::format("Execution: {}", name(call.execution))) +
         fmt::format("{:{}}per micro-batch: {}\n", "", page_indent, kernels_of(call));
}

std::string calls_section(const TasksResult& tasks) {
  if (tasks.calls.empty()) return "";
  std::string text = heading("Model calls");
  TextTable table("llrrl");
  table.add_row({"", "execution", "host", "device", "bound by"});
  for (const auto& [id, call] : tasks.calls) {
    table.add_row({id, std::string(name(call.execution)), format_seconds(call.host), format_seconds(call.device),
                   call.front_end_bound() ? "host" : "device"});
  }
  text += table.text(page_indent);
  for (const auto& [id, call] : tasks.calls)
    text += fmt::format("{:{}}{}: {}\n", "", page_indent, id, kernels_of(call));
  return text;
}

std::string answer(const Result& result, const TrainResult& train, bool verbose) {
  return headline(result, train, verbose) + breakdown_section(result, verbose) + communication_section(train, verbose) +
         token_section(train) + server_section(train, verbose) + split_section(train) +
         (verbose ? goodput_section(train) + bill_section(train) : "") + fabric_section(result.scenario, train) +
         (verbose ? memory_section(train) + execution_section(train) : "");
}

std::string time_line(const Result& result) {
  return labelled("Time", format_seconds(result.time()) + interval_of(result)) + uncertainty_line(result);
}

std::string answer(const Result& result, const CollectiveResult& c, bool) {
  return time_line(result) + routing_line(result) +
         labelled("Bandwidth", fmt::format("{} algorithm · {} bus", format_bandwidth(c.algorithm_bandwidth),
                                           format_bandwidth(c.bus_bandwidth))) +
         labelled("Algorithm", c.chosen_algorithm);
}

std::string answer(const Result& result, const OperatorResult& op, bool) {
  std::string text = time_line(result);
  if (op.per_access) {
    text += labelled("Per access", format_seconds(*op.per_access));
    text +=
        labelled("Bandwidth", fmt::format("{} over {}", format_bandwidth(op.bytes / op.time), format_bytes(op.bytes)));
  } else if (op.flops > Flops(0.0)) {
    text += labelled("Work", format_flops(op.flops) + " · " + format_bytes(op.bytes));
    text += labelled("Achieved", format_rate(op.flops / op.time) + " · " + format_bandwidth(op.bytes / op.time));
  } else if (op.bytes > Bytes(0.0)) {  // storage, data loading
    text += labelled("Work", format_bytes(op.bytes));
    text += labelled("Achieved", format_bandwidth(op.bytes / op.time));
  }
  text += labelled("Bound by", op.bound);
  if (op.memory) {
    text += labelled(
        "Memory", fmt::format("{} peak · {} saved for the backward pass · {} workspace", format_bytes(op.memory->peak),
                              format_bytes(op.memory->saved), format_bytes(op.memory->workspace)));
  }
  return text;
}

std::string answer(const Result& result, const TasksResult& tasks, bool) {
  TextTable table("lr");
  for (const auto& [id, finish] : tasks.finish) table.add_row({id, format_seconds(finish)});
  return time_line(result) + heading("Task end times") + table.text(page_indent) + calls_section(tasks);
}

}  // namespace

std::string interval_of(const Result& result) {
  if (!(result.uncertainty_high > result.uncertainty_low)) return "";
  return " " + interval(format_seconds(result.uncertainty_low), format_seconds(result.uncertainty_high));
}

std::string title_of(const Result& result, std::string_view begin, std::string_view end) {
  static constexpr std::array<std::string_view, names_of<Fidelity>.size()> meanings = {
      "no contention", "simulated contention", "each step of each collective"};
  const std::string title = fmt::format("{}{} ({}: {}){}", begin, result.scenario, name(result.fidelity),
                                        meanings[static_cast<std::size_t>(result.fidelity)], end);
  return begin.starts_with(' ') ? "  " + wrap(title, page_width() - 2, 6) : wrap(title, page_width(), page_indent);
}

std::string to_text(const Result& result, const TextOptions& options) {
  const std::string numbers =
      std::visit([&](const auto& work) { return answer(result, work, options.verbose); }, result.work);
  return title_of(result) + "\n\n" + memory_verdict(result) + settings_section(result, options.verbose) + numbers +
         warnings_section(result, options.verbose) + constants_section(result, options.verbose) +
         framework_section(result, options.verbose);
}

}  // namespace foretrain
