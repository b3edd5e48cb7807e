#include "reports/result/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "model/base/format.hpp"
#include "reports/print/names.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

/// "tensor-parallel all-gather": results keep the short names of before.
std::string operation_of(const std::string& collective) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> operations = {
      {{" gather", " all-gather"}, {" scatter", " reduce-scatter"}, {" sum", " all-reduce"}}};
  for (const auto& [ending, operation] : operations) {
    if (collective.ends_with(ending)) return collective.substr(0, collective.size() - ending.size()).append(operation);
  }
  return collective;
}

/// "synchronisation/compute 0.45 (at peak rates 0.31), bucket 160 MB".
std::string gradients_text(const TrainResult& train, bool verbose) {
  std::string text, formula;
  if (const auto& ratio = train.communication_to_compute; ratio && ratio->simulated > 0.0) {
    text = fmt::format("synchronisation/compute {:.3g} (at peak rates {:.3g})", ratio->simulated, ratio->formula);
    formula =
        fmt::format(". At peak rates: {}, without {}", communication_ratio_formula, communication_ratio_leaves_out);
  }
  if (const auto& buckets = train.buckets) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ",
                        is_finite(buckets->size) ? "bucket " + format_bytes(buckets->size) : "one bucket",
                        verbose ? fmt::format(" ({})", buckets->rule) : "");
  }
  return text.empty() ? "" : paragraph(text + (verbose ? formula : ""));
}

}  // namespace

std::string label_of_collective(const TrainResult& train, const std::string& collective) {
  if (collective != inside_layers) return collective;
  std::string text;
  for (const auto& [name, traffic] : train.inside_layers) {
    const std::string ranks = name.substr(0, name.find_first_of(" -"));  // "tensor" of "tensor-parallel gather"
    if (text.find(ranks) == std::string::npos) text += (text.empty() ? "" : ", ") + ranks;
  }
  return text.empty() ? collective : text + " collectives";
}

std::string communication_section(const TrainResult& train, bool verbose) {
  if (train.communication.empty()) return "";
  const bool chosen =
      std::ranges::any_of(train.communication, [](const auto& row) { return !row.second.algorithm.empty(); });
  TextTable table(verbose ? "lrrrrl" : "lrrrl");
  const auto add = [&](const std::string& name, Seconds total, const std::string& hidden, const std::string& exposed,
                       Bytes sent, const std::string& algorithm) {
    std::vector<std::string> row = {name, format_seconds(total), exposed, sent > Bytes(0.0) ? format_bytes(sent) : "",
                                    algorithm};
    if (verbose) row.insert(row.begin() + 2, hidden);
    table.add_row(std::move(row));
  };
  std::vector<std::string> header = {"Communication", "total", "exposed", "sent per GPU", chosen ? "algorithm" : ""};
  if (verbose) header.insert(header.begin() + 2, "hidden");
  table.add_row(std::move(header));
  for (const auto& [collective, time] : train.communication) {
    if (!verbose && std::max(time.total, time.exposed) < least_share * train.step_time) continue;
    const Seconds hidden = time.total - time.exposed;  // less than a billionth is rounding
    add("  " + label_of_collective(train, collective), time.total,
        format_seconds(hidden > 1e-9 * time.total ? hidden : Seconds(0.0)), format_seconds(time.exposed), time.sent,
        time.algorithm);
    if (!verbose || collective != inside_layers || train.inside_layers.size() < 2) continue;
    for (const auto& [name, traffic] : train.inside_layers)
      add("    " + operation_of(name), traffic.alone, "", "", traffic.sent, "");
  }
  return "\n" + table.text(0) + gradients_text(train, verbose);
}

std::string server_section(const TrainResult& train, bool verbose) {
  if (!train.parameter_server) return "";
  const ParameterServerResult& p = *train.parameter_server;
  TextTable table("ll");
  if (verbose || p.imbalance > 1.005)
    table.add_row({"imbalance", fmt::format("largest shard {:.2f} x the mean", p.imbalance)});
  table.add_row({"utilisation", fmt::format("busiest link {} · busiest server CPU {}",
                                            format_percent(p.link_utilisation), format_percent(p.cpu_utilisation))});
  table.add_row({"lower bounds",
                 fmt::format("worker compute {} · server link {} · server CPU {}", format_seconds(p.compute_bound),
                             format_seconds(p.link_bound), format_seconds(p.server_bound))});
  if (p.staleness && (verbose || p.staleness->max > 0.0)) {
    const ParameterServerResult::Staleness& s = *p.staleness;
    table.add_row({"staleness", fmt::format("mean {:.1f} · P50 {:.0f} · P90 {:.0f} · P99 {:.0f} · max {:.0f} updates",
                                            s.mean, s.p50, s.p90, s.p99, s.max)});
  }
  return fmt::format("\nParameter servers: {}, {}\n", counted(p.workers, "worker"), counted(p.servers, "server")) +
         table.text(page_indent);
}

}  // namespace foretrain
