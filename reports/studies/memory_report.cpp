#include "reports/studies/memory_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/base/format.hpp"
#include "reports/print/table.hpp"
#include "reports/result/json.hpp"
#include "reports/result/text.hpp"

namespace foretrain {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array all_phases = {MemoryTimeline::Phase::forward, MemoryTimeline::Phase::loss,
                                   MemoryTimeline::Phase::backward, MemoryTimeline::Phase::optimizer};

/// "transformer block 31 (backward) of micro-batch 1".
std::string when(const MemoryReport& report) {
  const MemoryTimeline::Moment& moment = report.timeline.moments[report.timeline.peak];
  if (moment.layer < 0) return std::string(name(moment.phase));
  const std::string number = report.block > 0 ? fmt::format(" {}", report.block) : "";
  return fmt::format("{}{} ({}) of micro-batch {}", moment.layer_name, number, name(moment.phase),
                     moment.micro_batch + 1);
}

/// The fullest moment of a phase; null where the stage has none.
const MemoryTimeline::Moment* fullest(const MemoryTimeline& timeline, MemoryTimeline::Phase phase) {
  const MemoryTimeline::Moment* found = nullptr;
  for (const MemoryTimeline::Moment& moment : timeline.moments) {
    if (moment.phase != phase) continue;
    if (found == nullptr || moment.parts.total() > found->parts.total()) found = &moment;
  }
  return found;
}

std::string phase_table(const MemoryTimeline& timeline) {
  std::vector<const MemoryTimeline::Moment*> columns;
  std::vector<std::string> header = {""};
  for (const MemoryTimeline::Phase phase : all_phases) {
    const MemoryTimeline::Moment* moment = fullest(timeline, phase);
    if (moment == nullptr) continue;
    columns.push_back(moment);
    header.emplace_back(name(phase));
  }
  header.emplace_back("of capacity");
  TextTable table("l" + std::string(columns.size(), 'r') + "l");
  table.add_row(header);
  const MemoryParts& peak = timeline.moments[timeline.peak].parts;
  for (std::size_t p = 0; p < memory_part_count; ++p) {
    std::vector<std::string> row = {std::string(name(static_cast<MemoryPart>(p)))};
    bool any = false;
    for (const MemoryTimeline::Moment* moment : columns) {
      const Bytes size = moment->parts.size.at(p);
      any = any || size > Bytes(0.0);
      row.push_back(size > Bytes(0.0) ? format_bytes(size) : "-");
    }
    row.push_back(bar(peak.size.at(p) / timeline.capacity, columns.size() > 3 ? 2 * bar_width / 3 : bar_width));
    if (any) table.add_row(row);
  }
  table.add_rule();
  std::vector<std::string> sums = {"sum"};
  for (const MemoryTimeline::Moment* moment : columns) sums.push_back(format_bytes(moment->parts.total()));
  table.add_row(sums);
  return table.text(page_indent);
}

/// "fits with recompute: full: 5.0 of 6.0 GB", change and memory in columns.
std::string remedies_table(const std::vector<std::string>& remedies) {
  constexpr std::string_view fits_with = "fits with ";
  TextTable table("lr", {"change", "peak memory"});
  for (const std::string& remedy : remedies) {
    const std::size_t begin = remedy.starts_with(fits_with) ? fits_with.size() : 0, end = remedy.rfind(": ");
    table.add_row({remedy.substr(begin, end - begin), remedy.substr(end + 2)});
  }
  return table.text(page_indent);
}

Json parts_of(const MemoryParts& parts) {
  Json json;
  for (std::size_t p = 0; p < memory_part_count; ++p)
    json[memory_part_keys.at(p)] = whole_number(parts.size.at(p).value());
  json["total"] = whole_number(parts.total().value());
  return json;
}

Json json_of(const MemoryTimeline::Moment& moment) {
  Json json = {{"phase", name(moment.phase)}};
  if (moment.layer >= 0) {
    json["micro_batch"] = moment.micro_batch;
    json["layer"] = moment.layer;
    json["layer_name"] = moment.layer_name;
  }
  json["bytes"] = parts_of(moment.parts);
  return json;
}

}  // namespace

std::string to_text(const MemoryReport& report) {
  const MemoryFootprint& m = report.footprint;
  const MemoryTimeline& timeline = report.timeline;
  std::string text = report.scenario + "\n\n";
  const std::string stage =
      report.stages > 1 ? fmt::format(", pipeline stage {} of {}", timeline.stage + 1, report.stages) : "";
  text += wrap(fmt::format("Peak GPU memory: {} ({}) on {}{}", of_capacity(m.total(), m.capacity),
                           m.fits_gpu() ? "fits" : verdict(m), report.gpu, stage),
               page_width(), 2) +
          "\n";
  if (m.host > Bytes(0.0)) {
    text += fmt::format("CPU memory per node: {} ({})\n", of_capacity(m.host, m.host_capacity),
                        m.fits_host() ? "fits" : "DOES NOT FIT");
  }
  text += fmt::format("Peak at: {}\n\nPeak memory per phase\n{}\n", when(report), phase_table(timeline));
  if (report.largest_micro_batch > 0) {
    text += fmt::format("Largest micro-batch that fits: {} (now {}); largest that divides this batch: {}\n",
                        report.largest_micro_batch, report.micro_batch, report.largest_of_batch);
  } else {
    text += fmt::format("No micro-batch size fits (now {})\n", report.micro_batch);
  }
  if (!report.remedies.empty())
    text += "\nSingle changes that fit, fewest GPUs first\n" + remedies_table(report.remedies);
  return text;
}

std::string to_json(const MemoryReport& report) {
  Json json;
  json["scenario"] = report.scenario;
  json["memory_per_gpu_bytes"] = footprint_json(report.footprint, true);
  json["stage"] = report.timeline.stage;
  json["peak"] = json_of(report.timeline.moments[report.timeline.peak]);
  json["micro_batch"] = report.micro_batch;
  json["largest_micro_batch"] = report.largest_micro_batch;
  json["remedies"] = report.remedies;
  json["micro_batches"] = report.timeline.micro_batches;
  json["micro_batches_shown"] = report.timeline.shown;
  json["timeline"] = Json::array();
  for (const MemoryTimeline::Moment& moment : report.timeline.moments) json["timeline"].push_back(json_of(moment));
  return json.dump(2);
}

}  // namespace foretrain
