#include "reports/goodput_report.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "model/base/format.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

using GoodputJson = nlohmann::ordered_json;

/// Where the time of a training goes: names in tables and in JSON.
struct SharePart {
  std::string_view name, key;
  double LifetimeShares::*share;
};
constexpr std::array<SharePart, 7> share_parts = {{{"steps that last", "useful", &LifetimeShares::useful},
                                                   {"saving", "checkpoints", &LifetimeShares::checkpoints},
                                                   {"steps done again", "lost", &LifetimeShares::lost},
                                                   {"noticing failures", "detection", &LifetimeShares::detection},
                                                   {"waiting for machines", "machines", &LifetimeShares::machines},
                                                   {"restarts", "restarts", &LifetimeShares::restarts},
                                                   {"stragglers", "stragglers", &LifetimeShares::stragglers}}};

/// The moments of LifetimeResult that are printed.
struct LengthPart {
  std::string_view key;
  Seconds LifetimeResult::*length;
};
constexpr std::array<LengthPart, 6> length_parts = {{{"mean", &LifetimeResult::mean},
                                                     {"p5", &LifetimeResult::p5},
                                                     {"p50", &LifetimeResult::p50},
                                                     {"p90", &LifetimeResult::p90},
                                                     {"p95", &LifetimeResult::p95},
                                                     {"p99", &LifetimeResult::p99}}};

GoodputJson choice_json(const IntervalChoice& choice) { return {{"every", choice.every}, {"goodput", choice.goodput}}; }
IntervalChoice choice_from(const GoodputJson& json) {
  return {json.at("every").get<int>(), json.at("goodput").get<double>()};
}

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
  return fmt::format("{:{}}{}\n", "", page_indent, wrap(text, page_width() - page_indent, page_indent));
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
  return fmt::format("{:{}}{}\n", "", page_indent, wrap(text, page_width() - page_indent, page_indent));
}

}  // namespace

std::string goodput_section(const TrainResult& train) {
  if (!train.goodput) return "";
  const TrainResult::Goodput& goodput = *train.goodput;
  const LifetimeResult& life = goodput.simulated;
  TextTable table("lrl");
  for (const auto& [label, key, share] : share_parts) {
    const double part = life.shares.*share;
    if (part > 0.0) table.add_row({std::string(label), format_percent(part), bar(part, bar_width)});
  }
  std::string text = fmt::format("\nGoodput with failures: {}\n", format_percent(life.shares.useful));
  text += table.text(page_indent) + causes_line(goodput);
  if (goodput.intervals) text += interval_line(train);
  const std::string lasts = fmt::format(
      "{} lasts {} on average, P50 {} · P90 {} · P99 {}", train.time_to_train ? "training" : "thirty days of steps",
      format_seconds(life.mean), format_seconds(life.p50), format_seconds(life.p90), format_seconds(life.p99));
  return text + fmt::format("{:{}}{}\n", "", page_indent, wrap(lasts, page_width() - page_indent, page_indent));
}

std::string bill_section(const TrainResult& train) {
  if (!train.bill) return "";
  const TrainResult::Bill& bill = *train.bill;
  TextTable table("ll");
  table.add_row({"likely", fmt::format("{} to {}", format_seconds(bill.shortest), format_seconds(bill.longest))});
  if (bill.usd_low) {
    table.add_row({"", fmt::format("{} to {} USD", format_count(*bill.usd_low), format_count(*bill.usd_high))});
  }
  if (bill.kwh) {
    table.add_row(
        {"electricity", fmt::format("{:.0f} kW on average · {} kWh", *bill.watts * 1e-3, format_count(*bill.kwh))});
  }
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

nlohmann::ordered_json goodput_json(const TrainResult::Goodput& goodput) {
  GoodputJson json = {{"goodput", goodput.simulated.shares.useful}};
  for (const auto& [label, key, share] : share_parts) {
    json["shares"][std::string(key)] = goodput.simulated.shares.*share;
  }
  for (const auto& [key, length] : length_parts) {
    json["length_s"][std::string(key)] = (goodput.simulated.*length).value();
  }
  json["ends"] = goodput.simulated.ends;
  json["mtbf_s"] = goodput.mtbf.value();
  json["recovery_s"] = goodput.recovery.value();
  json["checkpoint_blocks_s"] = goodput.blocked.value();
  json["checkpoint_unsafe_s"] = goodput.unsafe.value();
  json["interruptions"] = GoodputJson::object();
  for (std::size_t i = 0; i < goodput.kinds.size(); ++i) {
    json["interruptions"][goodput.kinds[i]] = goodput.simulated.interruptions[i];
  }
  if (!goodput.intervals) return json;
  json["checkpoint_every"] = goodput.every;
  if (goodput.intervals->daly) json["daly_formula"] = goodput.by_daly;
  if (const auto& young = goodput.intervals->young) json["young"] = choice_json(*young);
  if (const auto& daly = goodput.intervals->daly) json["daly"] = choice_json(*daly);
  json["best"] = choice_json(goodput.intervals->best);
  json["intervals"] = GoodputJson::array();
  for (const IntervalChoice& choice : goodput.intervals->tried) json["intervals"].push_back(choice_json(choice));
  return json;
}

TrainResult::Goodput goodput_from(const nlohmann::ordered_json& json) {
  TrainResult::Goodput goodput;
  LifetimeResult& life = goodput.simulated;
  for (const auto& [label, key, share] : share_parts) {
    life.shares.*share = json.at("shares").at(std::string(key)).get<double>();
  }
  for (const auto& [key, length] : length_parts) {
    life.*length = Seconds(json.at("length_s").at(std::string(key)).get<double>());
  }
  life.ends = json.at("ends").get<bool>();
  goodput.mtbf = Seconds(json.at("mtbf_s").get<double>());
  goodput.recovery = Seconds(json.at("recovery_s").get<double>());
  goodput.blocked = Seconds(json.at("checkpoint_blocks_s").get<double>());
  goodput.unsafe = Seconds(json.at("checkpoint_unsafe_s").get<double>());
  for (const auto& [kind, count] : json.at("interruptions").items()) {
    goodput.kinds.push_back(kind);
    life.interruptions.push_back(count.get<double>());
  }
  if (!json.contains("intervals")) return goodput;
  goodput.every = json.at("checkpoint_every").get<int>();
  goodput.by_daly = json.value("daly_formula", 0.0);
  IntervalSearch& search = goodput.intervals.emplace();
  if (json.contains("young")) search.young = choice_from(json.at("young"));
  if (json.contains("daly")) search.daly = choice_from(json.at("daly"));
  search.best = choice_from(json.at("best"));
  for (const GoodputJson& choice : json.at("intervals")) search.tried.push_back(choice_from(choice));
  return goodput;
}

nlohmann::ordered_json bill_json(const TrainResult::Bill& bill) {
  GoodputJson json = {{"time_to_train_s", {{"low", bill.shortest.value()}, {"high", bill.longest.value()}}}};
  if (bill.usd_low) json["cost"] = {{"low", *bill.usd_low}, {"high", *bill.usd_high}};
  if (bill.watts) json["watts"] = *bill.watts;
  if (bill.kwh) json["kwh"] = *bill.kwh;
  if (bill.kg_co2) json["kg_co2"] = *bill.kg_co2;
  return json;
}

nlohmann::ordered_json split_json(const TrainResult::Split& split) {
  GoodputJson json = {{"rule", split.rule}, {"equal_step_time_s", split.equal_step.value()}};
  for (const auto& [node, replicas, micro_batches] : split.kinds) {
    json["kinds"].push_back({{"node", node}, {"replicas", replicas}, {"micro_batches", micro_batches}});
  }
  return json;
}

TrainResult::Split split_from(const nlohmann::ordered_json& json) {
  TrainResult::Split split;
  split.rule = json.at("rule").get<std::string>();
  split.equal_step = Seconds(json.at("equal_step_time_s").get<double>());
  for (const GoodputJson& kind : json.at("kinds")) {
    split.kinds.push_back(
        {kind.at("node").get<std::string>(), kind.at("replicas").get<int>(), kind.at("micro_batches").get<int>()});
  }
  return split;
}

TrainResult::Bill bill_from(const nlohmann::ordered_json& json) {
  TrainResult::Bill bill;
  const GoodputJson& time = json.at("time_to_train_s");
  bill.shortest = Seconds(time.at("low").get<double>());
  bill.longest = Seconds(time.at("high").get<double>());
  const auto optional = [&](const GoodputJson& object, const char* key, std::optional<double>& value) {
    if (object.contains(key)) value = object.at(key).get<double>();
  };
  if (json.contains("cost")) {
    optional(json.at("cost"), "low", bill.usd_low);
    optional(json.at("cost"), "high", bill.usd_high);
  }
  optional(json, "watts", bill.watts);
  optional(json, "kwh", bill.kwh);
  optional(json, "kg_co2", bill.kg_co2);
  return bill;
}

}  // namespace foretrain
