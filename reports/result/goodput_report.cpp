#include "reports/result/goodput_report.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "model/base/format.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

/// Where the time of a training goes.
struct SharePart {
  std::string_view name;
  double LifetimeShares::*share;
};
constexpr std::array<SharePart, 7> share_parts = {{{"steps that last", &LifetimeShares::useful},
                                                   {"saving", &LifetimeShares::checkpoints},
                                                   {"steps done again", &LifetimeShares::lost},
                                                   {"noticing failures", &LifetimeShares::detection},
                                                   {"waiting for machines", &LifetimeShares::machines},
                                                   {"restarts", &LifetimeShares::restarts},
                                                   {"stragglers", &LifetimeShares::stragglers}}};

std::string interval_line(const TrainResult& train) {
  const TrainResult::Goodput& goodput = *train.goodput;
  const IntervalSearch& search = *goodput.intervals;
  const auto told = [&](const char* whose, const IntervalChoice& choice) {
    return fmt::format("{} {} ({}): {}", whose, choice.every, format_seconds(choice.every * train.step_time),
                       format_percent(choice.goodput));
  };
  std::string text = fmt::format("steps between checkpoints: {} ({}); ", goodput.every,
                                 format_seconds(goodput.every * train.step_time));
  if (search.young && search.daly) {
    text += fmt::format("{} · {} · ", told("Young", *search.young), told("Daly", *search.daly));
  }
  text += told("best by simulation", search.best);
  if (search.daly) text += fmt::format("; Daly's formula gives {} for this interval", format_percent(goodput.by_daly));
  return paragraph(text);
}

std::string causes_line(const TrainResult::Goodput& goodput) {
  double all = 0.0;
  for (const double count : goodput.simulated.interruptions) all += count;
  std::string text =
      fmt::format("one failure in {}, {} in this training", format_seconds(goodput.mtbf), format_count(all));
  for (std::size_t i = 0; i < goodput.kinds.size() && all > 0.0; ++i) {
    text += fmt::format("{}{} {}", i == 0 ? ": " : ", ", goodput.kinds[i],
                        format_percent(goodput.simulated.interruptions[i] / all));
  }
  return paragraph(text);
}

}  // namespace

std::string goodput_section(const TrainResult& train) {
  if (!train.goodput) return "";
  const TrainResult::Goodput& goodput = *train.goodput;
  const LifetimeResult& life = goodput.simulated;
  TextTable table("lrl");
  for (const auto& [label, share] : share_parts) {
    const double part = life.shares.*share;
    if (part > 0.0) table.add_row({std::string(label), format_percent(part), bar(part, bar_width)});
  }
  std::string text = fmt::format("\nGoodput with failures: {}\n", format_percent(life.shares.useful));
  text += table.text(page_indent) + causes_line(goodput);
  if (goodput.intervals) text += interval_line(train);
  const std::string lasts =
      fmt::format("{} {} on average, P50 {} · P90 {} · P99 {}",
                  train.time_to_train ? "training lasts" : "thirty days of steps last", format_seconds(life.mean),
                  format_seconds(life.p50), format_seconds(life.p90), format_seconds(life.p99));
  return text + paragraph(lasts);
}

std::string length_text(const TrainResult& train) {
  std::string mean = format_seconds(*train.time_to_train);
  if (!train.bill) return mean;
  return mean + " " + likely(format_seconds(train.bill->shortest), format_seconds(train.bill->longest));
}

std::string cost_text(const TrainResult& train) {
  std::string mean = format_count(*train.cost_usd) + " USD";
  if (!train.bill || !train.bill->usd_low) return mean;
  return mean + " " + likely(format_count(*train.bill->usd_low), format_count(*train.bill->usd_high));
}

std::string bill_section(const TrainResult& train) {
  if (!train.bill || !train.bill->kwh) return "";
  const TrainResult::Bill& bill = *train.bill;
  TextTable table("ll");
  table.add_row(
      {"electricity", fmt::format("{:.0f} kW on average · {} kWh", *bill.watts * 1e-3, format_count(*bill.kwh))});
  if (bill.kg_co2) table.add_row({"CO2", fmt::format("{} t", format_count(*bill.kg_co2 * 1e-3))});
  return "\nThe whole training\n" + table.text(page_indent);
}

std::string split_section(const TrainResult& train) {
  if (!train.split) return "";
  TextTable table("lrr", {"micro-batches a step", "replicas", "each"});
  for (const auto& [node, replicas, micro_batches] : train.split->kinds) {
    table.add_row({node, std::to_string(replicas), std::to_string(micro_batches)});
  }
  return fmt::format("\nBatch split: {}; equally many would take {}, {} of this step\n", train.split->rule,
                     format_seconds(train.split->equal_step),
                     format_percent(train.split->equal_step / train.step_time)) +
         table.text(page_indent);
}

}  // namespace foretrain
