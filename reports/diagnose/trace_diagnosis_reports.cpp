// Traces beside their prediction as text and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/base/format.hpp"
#include "model/base/words.hpp"
#include "reports/diagnose/trace_diagnosis.hpp"
#include "reports/print/names.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"
#include "reports/result/largest_change.hpp"

namespace foretrain {

namespace {

/// A mean over steps: "0.3333", "26,667".
std::string count_text(double count) {
  if (count <= 0.0) return "";
  return count < 1000.0 ? fmt::format("{:.4g}", count) : grouped(fmt::format("{:.0f}", count));
}

/// The kind of a row's difference.
std::string_view word_of(const TraceRow& row) {
  constexpr double alike = 0.02;
  const double difference = row.difference() / std::max(row.expected, row.measured);
  if (row.expected == Seconds(0.0)) return "extra";
  if (row.measured == Seconds(0.0)) return "missing";
  return std::abs(difference) < alike ? "" : difference > 0.0 ? "slower" : "faster";
}

std::string rows_text(const TraceDiagnosis& d) {
  TextTable table("lrrrlrr", {"category", "expected", "measured", "difference", "", "kernels", "expected kernels"});
  for (const TraceRow& row : d.rows) {
    table.add_row({row.name, format_seconds(row.expected), format_seconds(row.measured),
                   signed_seconds(row.difference()), std::string(word_of(row)), count_text(row.measured_count),
                   count_text(row.expected_count)});
  }
  return table.text(page_indent);
}

std::string collectives_text(const TraceDiagnosis& d) {
  TextTable table("lrrrrrr", {"", "size", "GPUs", "per step", "time", "bus bandwidth", "expected"});
  const auto bandwidth = [](const std::optional<BytesPerSecond>& one) { return one ? format_bandwidth(*one) : ""; };
  for (const TraceCollective& one : d.collectives) {
    table.add_row({label_of(one.kind), one.size > Bytes(0.0) ? format_bytes(one.size) : "",
                   one.ranks > 0 ? std::to_string(one.ranks) : "", count_text(one.count), format_seconds(one.time),
                   bandwidth(one.reached), bandwidth(one.expected)});
  }
  return table.text(page_indent);
}

std::string ranks_text(const TraceDiagnosis& d) {
  TextTable table("lrr", {"", "waits per step", "comes last"});
  for (const TraceRank& rank : d.ranks) {
    table.add_row(
        {std::filesystem::path(rank.file).filename().string(), format_seconds(rank.waits), format_percent(rank.last)});
  }
  return table.text(page_indent);
}

nlohmann::ordered_json json_of(const Breakdown& parts) {
  nlohmann::ordered_json json;
  for (const BreakdownPart& part : breakdown_parts) json[std::string(part.key)] = (parts.*part.time).value();
  return json;
}

}  // namespace

std::string verdict_of(const TraceDiagnosis& d) {
  const auto share = [&](Seconds time) { return format_percent(time / d.measured); };
  const std::string_view bound = bottleneck_of(d.parts);
  if (bound == "host overhead") {
    return fmt::format("Host-bound: the GPU waits {} of the step for kernel launches", share(d.parts.host_overhead));
  }
  if (bound == "data loading") {
    return fmt::format("Loader-bound: the GPU waits {} of the step for the data loader", share(d.parts.data_stall));
  }
  if (bound == "exposed communication") {
    return fmt::format("Communication-bound: {} of the step", share(d.parts.exposed_communication));
  }
  if (bound == "pipeline bubble") {
    return fmt::format("The GPU waits {} of the step for other streams or ranks, or for unknown reasons",
                       share(d.parts.pipeline_bubble));
  }
  return fmt::format("The GPU computes {} of the step", share(d.parts.compute + d.parts.optimizer));
}

std::string to_text(const TraceDiagnosis& d) {
  std::string text = fmt::format("\n{}\n", verdict_of(d));
  text += fmt::format("\nStep by category, mean of {}: {} of the difference has a category\n", counted(d.steps, "step"),
                      format_percent(d.explained));
  text += rows_text(d);
  if (!d.collectives.empty()) text += "\nCollectives\n" + collectives_text(d);
  if (!d.ranks.empty()) text += "\nStragglers: others wait for the first\n" + ranks_text(d);
  return text;
}

nlohmann::ordered_json to_json(const TraceDiagnosis& d) {
  nlohmann::ordered_json json = {
      {"steps", d.steps},         {"expected_s", d.expected.value()},     {"measured_s", d.measured.value()},
      {"verdict", verdict_of(d)}, {"bottleneck", bottleneck_of(d.parts)}, {"measured_breakdown_s", json_of(d.parts)},
      {"explained", d.explained}};
  for (const char* list : {"categories", "collectives", "ranks"}) json[list] = nlohmann::json::array();
  for (const TraceRow& row : d.rows) {
    nlohmann::ordered_json one = {{"name", row.name},
                                  {"expected_s", row.expected.value()},
                                  {"measured_s", row.measured.value()},
                                  {"difference", word_of(row)}};
    if (row.expected_count > 0.0) one["expected_kernels"] = row.expected_count;
    if (row.measured_count > 0.0) one["measured_kernels"] = row.measured_count;
    json["categories"].push_back(std::move(one));
  }
  for (const TraceCollective& row : d.collectives) {
    nlohmann::ordered_json one = {{"operation", name(row.kind)},
                                  {"bytes", row.size.value()},
                                  {"ranks", row.ranks},
                                  {"per_step", row.count},
                                  {"time_s", row.time.value()}};
    if (row.reached) one["bus_bandwidth"] = row.reached->value();
    if (row.expected) one["expected_bus_bandwidth"] = row.expected->value();
    json["collectives"].push_back(std::move(one));
  }
  for (const TraceRank& rank : d.ranks) {
    json["ranks"].push_back({{"file", rank.file}, {"waits_s", rank.waits.value()}, {"comes_last", rank.last}});
  }
  return json;
}

}  // namespace foretrain
