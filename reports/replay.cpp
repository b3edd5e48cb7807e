#include "reports/replay.hpp"

#include <fmt/format.h>

#include "model/base/format.hpp"
#include "model/base/statistics.hpp"
#include "reports/table.hpp"
#include "validate/host_replay/measurements.hpp"

namespace foretrain {

std::string replay_text(const std::vector<HostMeasurement>& runs) {
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::left});
  table.add_row({"run", "by", "ranks", "predicted", "measured", "spread", "error", "cores", ""});
  table.add_rule();
  bool limited = false;
  for (const HostMeasurement& run : runs) {
    const bool busy = run.busy > busy_limit;
    limited = limited || busy;
    table.add_row({run.name, run.executor, std::to_string(run.ranks), format_seconds(run.predicted),
                   format_seconds(run.median()), format_percent(run.spread()),
                   fmt::format("{:+.1f} %", run.error() * 100.0), fmt::format("{:.0f} %", run.busy * 100.0),
                   busy ? "*" : ""});
  }
  std::string text = "Predicted and measured: medians; spread is the distance of the quartiles\n\n" + table.text(2);
  if (limited) text += fmt::format("\n  * the cores were busy more than {:.0f} % of the time\n", busy_limit * 100.0);
  return text;
}

std::string probe_text(const std::vector<ProbeMeasurement>& probes) {
  TextTable table(
      {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"message", "payload", "card", "packets", "wire bytes", "by the model", "returned", "time"});
  table.add_rule();
  for (const ProbeMeasurement& p : probes) {
    table.add_row({p.protocol, format_bytes(p.payload), fmt::format("{:.0f} Mbit/s", p.rate.value() * 8e-6),
                   fmt::format("{:.2f}", p.packets), fmt::format("{:.1f}", p.wire_bytes),
                   fmt::format("{:.0f}", model_wire_bytes(p.protocol, p.payload).value()),
                   fmt::format("{:.1f}", p.returned_bytes), format_seconds(Seconds(median(p.samples)))});
  }
  return "Single messages between two hosts: bytes that the card counts, and by the packet model\n\n" + table.text(2);
}

std::vector<Comparison> comparisons_of(const std::vector<HostMeasurement>& runs) {
  std::vector<Comparison> comparisons;
  for (const HostMeasurement& run : runs) {
    comparisons.push_back({run.name, run.group, "time", run.median().value(), run.predicted.value()});
  }
  return comparisons;
}

}  // namespace foretrain
