#include "reports/result/text.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "model/base/format.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

/// "5,000 kWh", "37,000 MWh".
std::string energy_text(double kwh) {
  return kwh < 1e4 ? plain_number(kwh) + " kWh" : plain_number(kwh * 1e-3) + " MWh";
}

/// Breakdown of a training's time.
struct SharePart {
  std::string_view name;
  double LifetimeShares::*share;
};
constexpr std::array<SharePart, 7> share_parts = {{{"useful steps", &LifetimeShares::useful},
                                                   {"checkpoints", &LifetimeShares::checkpoints},
                                                   {"lost steps", &LifetimeShares::lost},
                                                   {"failure detection", &LifetimeShares::detection},
                                                   {"waiting for spare nodes", &LifetimeShares::machines},
                                                   {"restarts", &LifetimeShares::restarts},
                                                   {"stragglers", &LifetimeShares::stragglers}}};

/// `text` without its unit where that is the unit of `other`.
std::string without_unit_of(const std::string& other, const std::string& text) {
  const auto unit = [](const std::string& one) { return one.substr(std::min(one.rfind(' '), one.size())); };
  return unit(text) == unit(other) ? text.substr(0, text.size() - unit(text).size()) : text;
}

std::string interval_line(const TrainResult& train) {
  const TrainResult::Goodput& goodput = *train.goodput;
  const IntervalSearch& search = *goodput.intervals;
  const auto describe = [&](const char* rule, const IntervalChoice& choice) {
    return fmt::format("{} {} steps ({}): goodput {}", rule, choice.every,
                       format_seconds(choice.every * train.step_time), format_percent(choice.goodput));
  };
  std::string text =
      fmt::format("checkpoint every {} steps ({})", goodput.every, format_seconds(goodput.every * train.step_time));
  if (search.daly) text += fmt::format(", goodput {} by Daly's formula", format_percent(goodput.by_daly));
  text += "; optimum ";
  if (search.young && search.daly) {
    text += fmt::format("{} · {} · ", describe("by Young", *search.young), describe("by Daly", *search.daly));
  }
  return paragraph(text + describe("by simulation", search.best));
}

std::string causes_line(const TrainResult::Goodput& goodput) {
  double all = 0.0;
  for (const double count : goodput.simulated.interruptions) all += count;
  std::string text = fmt::format("mean time between failures {}, {} failures in this training",
                                 format_seconds(goodput.mtbf), format_count(all));
  for (std::size_t i = 0; i < goodput.kinds.size() && all > 0.0; ++i) {
    const std::string& kind = goodput.kinds[i];
    text += fmt::format("{}{} {}", i == 0 ? ": " : ", ",
                        kind == "gpu"   ? "GPU"
                        : kind == "nic" ? "NIC"
                                        : kind,
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
  const std::string lasts = fmt::format(
      "{}: mean {} · P50 {} · P90 {} · P99 {}",
      train.time_to_train ? "time to train with failures" : "thirty days of steps with failures",
      format_seconds(life.mean), format_seconds(life.p50), format_seconds(life.p90), format_seconds(life.p99));
  return text + paragraph(lasts);
}

std::string whole_training_lines(const TrainResult& train) {
  std::string text;
  if (train.goodput) {
    std::string lost;
    for (const SharePart& part : std::span(share_parts).subspan(1)) {
      const double share = train.goodput->simulated.shares.*part.share;
      if (share >= 0.0005) lost += fmt::format("{}{} {}", lost.empty() ? "" : ", ", part.name, format_percent(share));
    }
    text += labelled("Goodput", fmt::format("{}{}", format_percent(train.goodput->simulated.shares.useful),
                                            lost.empty() ? "" : fmt::format(" ({})", lost)));
  }
  if (!train.bill || !train.bill->kwh) return text;
  std::string energy = energy_text(*train.bill->kwh);
  if (train.bill->kg_co2) energy += fmt::format(" · {} t CO2", plain_number(*train.bill->kg_co2 * 1e-3));
  return text + labelled("Energy", energy);
}

std::string interval(const std::string& low, const std::string& high) {
  return fmt::format("(90 % interval {}–{})", without_unit_of(high, low), high);
}

std::string of_capacity(Bytes used, Bytes capacity) {
  const std::string all = format_bytes(capacity);
  const double gib = capacity.value() / 1073741824.0;
  const std::string whole = gib >= 1.0 && gib == std::floor(gib) ? fmt::format(" = {:.0f} GiB", gib) : "";
  return fmt::format("{} of {}{}", without_unit_of(all, format_bytes(used)), all, whole);
}

std::string length_text(const TrainResult& train, const std::string& length) {
  std::string mean = format_seconds(*train.time_to_train) + (length.empty() ? "" : " for " + length);
  if (!train.bill) return mean;
  return mean + " " + interval(format_seconds(train.bill->shortest), format_seconds(train.bill->longest));
}

std::string cost_text(const TrainResult& train) {
  std::string mean = format_count(*train.cost_usd) + " USD";
  if (!train.bill || !train.bill->usd_low) return mean;
  return mean + " " + interval(format_count(*train.bill->usd_low), format_count(*train.bill->usd_high));
}

std::string bill_section(const TrainResult& train) {
  if (!train.bill || !train.bill->kwh) return "";
  const TrainResult::Bill& bill = *train.bill;
  TextTable table("ll");
  table.add_row({"electricity", fmt::format("{} kW on average · {}", grouped(fmt::format("{:.0f}", *bill.watts * 1e-3)),
                                            energy_text(*bill.kwh))});
  if (bill.kg_co2) table.add_row({"CO2", plain_number(*bill.kg_co2 * 1e-3) + " t"});
  return "\nWhole training\n" + table.text(page_indent);
}

std::string split_section(const TrainResult& train) {
  if (!train.split) return "";
  TextTable table("lrr", {"node", "data-parallel ranks", "micro-batches per step"});
  for (const auto& [node, replicas, micro_batches] : train.split->kinds) {
    table.add_row({node, std::to_string(replicas), std::to_string(micro_batches)});
  }
  return fmt::format("\nBatch split: {} (an equal split takes {}, {} of this step)\n", train.split->rule,
                     format_seconds(train.split->equal_step),
                     format_percent(train.split->equal_step / train.step_time)) +
         table.text(page_indent);
}

}  // namespace foretrain
