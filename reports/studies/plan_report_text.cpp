#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "model/base/csv.hpp"
#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "reports/print/names.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"
#include "reports/result/csv.hpp"
#include "reports/result/goodput_report.hpp"
#include "reports/result/json.hpp"
#include "reports/studies/plan_report.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_runners_up = 10, most_in_front = 12;

std::string count_text(std::int64_t number) { return grouped(std::to_string(number)); }

std::string plan_of(const RankedPlan& plan) {
  return describe(plan.point) + (plan.is_measured_gpu ? "" : " (no training step of this GPU generation is measured)");
}

std::string name_of(const RankedPlan& plan) {
  return (plan.hardware.empty() ? "" : plan.hardware + ": ") + plan_of(plan);
}

/// What the best plan has although nobody allowed it, and why.
std::string extras_text(const PlanReport& report) {
  if (!report.without_extras) return "";
  std::string extras;
  for (const PlanExtra extra : extras_of(report.ranked.front().point)) {
    extras += (extras.empty() ? "" : ", ") + std::string(name(extra));
  }
  return std::isfinite(*report.without_extras)
             ? fmt::format("  Without {}, the best plan takes {:.2g} times as long\n", extras, *report.without_extras)
             : fmt::format("  Nothing fits without {}\n", extras);
}

std::string space_text(const PlanSearch& search) {
  const PlanCounts& counts = search.counts;
  const std::string of_all = search.complete ? "" : " of " + count_text(search.plans);
  std::string text = fmt::format(
      "  {}{} candidates in {} layouts: {} evaluated, {} exceed memory,", count_text(counts.plans), of_all,
      count_text(static_cast<std::int64_t>(search.layouts)), count_text(counts.estimated), count_text(counts.unfit));
  if (counts.impossible > 0) text += fmt::format(" {} impossible,", count_text(counts.impossible));
  text += "\n  the rest pruned by lower bound\n";
  if (!search.complete) text += "  Interrupted: the best may be among the candidates that were not looked at\n";
  return text;
}

/// "29.7 days (likely …) · 1.46 M USD (likely …)", or a step's where the training's length is not stated.
std::string outlook_text(const RankedPlan& plan) {
  const TrainResult& train = plan.train();
  if (train.time_to_train) return length_text(train) + (train.cost_usd ? " · " + cost_text(train) : "");
  return "step " + format_seconds(train.step_time) + (plan.usd > 0.0 ? fmt::format(" · {:.3f} USD", plan.usd) : "");
}

/// Whether the limits hold: how likely, or by how much not.
std::string limits_text(const RankedPlan& plan, const PlanLimits& limits) {
  if (!limits.any()) return "";
  std::string chance = "limits kept with a chance of " + format_chance(chance_within(plan.train(), limits));
  if (plan.excess <= 1.0) return chance;
  const std::string by = plan.excess < 2.0 ? fmt::format("{} too much", format_percent(plan.excess - 1.0))
                                           : fmt::format("{:.1f} times as much", plan.excess);
  return by + "; " + chance;
}

std::string memory_text(const RankedPlan& plan) {
  const MemoryFootprint& memory = plan.train().memory;
  return fmt::format("{} of {}", format_bytes(memory.total()), format_bytes(memory.capacity));
}

std::string best_text(const PlanReport& report) {
  const RankedPlan& best = report.ranked.front();
  std::string text = best.excess > 1.0
                         ? fmt::format("\nNo plan trains within {}; the nearest\n", describe(report.limits))
                         : "\nBest plan\n";
  text += fmt::format("  {}\n  step {} · MFU {} · {}\n", name_of(best), format_seconds(best.train().step_time),
                      format_percent(best.train().mfu), memory_text(best));
  text += extras_text(report);
  if (best.train().time_to_train) text += fmt::format("  {}\n", outlook_text(best));
  if (report.limits.any()) text += fmt::format("  {}: {}\n", describe(report.limits), limits_text(best, report.limits));
  text += fmt::format("\n  foretrain predict {}", shell_word(report.file));
  for (const std::string& change : best.overrides) text += fmt::format(" \\\n    --set {}", shell_quoted(change));
  for (const std::string& limit : best.limits) text += fmt::format("\n  {}", limit);
  return text + "\n";
}

/// A figure of the objective as a step's time.
std::string time_text(const RankedPlan& plan, double value) {
  return format_seconds(plan.train().step_time * (value / plan.value));
}

std::string chance_text(const PlanOdds& odds) {
  return fmt::format("best in {:.0f} % of the draws, {:.1f} % above the best of each", 100.0 * odds.chance,
                     100.0 * odds.regret);
}

/// "GPU compute ±8 %": what one standard deviation comes to.
std::string unknowns_text(const PlanReport& report, double Unknown::*what) {
  std::string text;
  for (const Unknown& one : report.unknowns) {
    const double percent = 100.0 * std::expm1(one.*what);
    if (percent >= 0.5) text += fmt::format("{}{} ±{:.0f} %", text.empty() ? "" : ", ", one.name, percent);
  }
  return text;
}

std::string odds_text(const PlanReport& report) {
  const RankedPlan& best = report.ranked.front();
  if (!best.odds) return "";
  const PlanOdds& odds = *best.odds;
  std::string text = "\nConfidence\n";
  const auto add = [&text](const std::string& line) { text += paragraph(line); };
  add(fmt::format("step {} to {} (P10 to P90), {} on average; {}", time_text(best, odds.low),
                  time_text(best, odds.high), time_text(best, odds.expected), chance_text(odds)));
  if (best.chance_of_shortage >= 0.005) {
    add(
        fmt::format("needs more memory than there is with a chance of {}, as errors of the stack's runs say; a "
                    "step then takes {:.0f} times as long, which the ranking counts",
                    format_chance(best.chance_of_shortage), shortage_slowdown));
  }
  if (report.is_simpler) {
    add(fmt::format("the simplest of the plans of which no more than {:.2g} % less is expected", 100 * noise_of_runs));
  }
  if (report.curse > 1.0005) {
    add(fmt::format("selection bias (winner's curse) {:+.1f} %: expect {}", 100.0 * (report.curse - 1.0),
                    time_text(best, best.value * report.curse)));
  }
  add(fmt::format("drawn, one standard deviation: {}; each plan by itself ±{:.0f} %",
                  unknowns_text(report, &Unknown::spread), 100.0 * std::expm1(plan_spread)));
  if (const std::string moved = unknowns_text(report, &Unknown::moves); !moved.empty()) {
    add("these move the step by: " + moved);
  }
  return text;
}

std::string better_batch_text(const PlanReport& report) {
  if (!report.better_batch) return "";
  const BetterBatch& better = *report.better_batch;
  std::string text = fmt::format(
      "\nA batch of {} instead of {} would let all {} GPUs of each node train:\n  step {}, {} more samples a second",
      better.batch, better.instead_of, better.gpus_per_node, format_seconds(better.step),
      format_percent(better.speedup - 1.0));
  if (const auto usd = report.ranked.front().train().cost_usd) {
    text += fmt::format(", {:.0f} USD to train instead of {:.0f}", *usd / better.speedup, *usd);
  }
  return text + "; by estimate\n";
}

std::string runners_up_text(const PlanReport& report) {
  std::string text;
  std::set<PlanKind> told{kind_of(report.ranked.front())};
  for (std::size_t i = 1; i < report.ranked.size() && told.size() <= most_runners_up; ++i) {
    const RankedPlan& plan = report.ranked[i];
    if (!told.insert(kind_of(plan)).second) continue;
    text += fmt::format("  {:>3}  {:>8}  {}\n       {}{}\n", i + 1, format_seconds(plan.train().step_time),
                        name_of(plan), plan.why, plan.odds ? "; " + chance_text(*plan.odds) : "");
  }
  if (text.empty()) return "";
  return fmt::format("\nAlternatives of other kinds among the best {} (why slower)\n{}", report.ranked.size(), text);
}

/// The best plan on each kind of machines.
std::string machines_text(const PlanReport& report) {
  std::string text = "\nBest plan on each, the cheapest first (* none beats it in both time and cost)\n";
  for (const RankedPlan& plan : report.machines) {
    const std::string limits = limits_text(plan, report.limits);
    text += fmt::format("  {} {}: {}\n      {}\n", plan.in_front ? "*" : " ", plan.machines, outlook_text(plan),
                        plan.hardware == plan.machines ? plan_of(plan) : name_of(plan));
    if (!limits.empty()) text += fmt::format("      {}\n", limits);
  }
  return text;
}

std::string front_text(const PlanReport& report) {
  if (!report.machines.empty()) return machines_text(report);
  TextTable table("rrrl", {"step", "USD a step", "memory", "no plan of those ranked beats it in all three"});
  std::size_t rows = 0;
  for (const RankedPlan& plan : report.ranked) {
    if (!plan.in_front || rows == most_in_front) continue;
    ++rows;
    table.add_row({format_seconds(plan.train().step_time), plan.usd > 0.0 ? fmt::format("{:.3f}", plan.usd) : "-",
                   format_bytes(plan.train().memory.total()), name_of(plan)});
  }
  return fmt::format("\nPareto front of time, cost and memory\n{}", table.text(page_indent));
}

std::string misses_text(const PlanReport& report) {
  if (report.misses.empty()) return "";
  std::string text = "\nWould be better, but do not fit\n";
  for (const RankedPlan& plan : report.misses) {
    text +=
        fmt::format("  {:>8}  {}\n            {}\n", format_seconds(plan.train().step_time), name_of(plan), plan.why);
  }
  return text;
}

/// On how many machines one would.
std::string least_text(const PlanReport& report) {
  if (!report.least) return "";
  return fmt::format("; the least on which one does are {} such machines, {} GPUs", report.least->nodes,
                     report.least->gpus());
}

nlohmann::ordered_json plan_json(const RankedPlan& plan, const PlanLimits& limits) {
  nlohmann::ordered_json json;
  if (!plan.hardware.empty()) json["hardware"] = plan.hardware;
  json["plan"] = describe(plan.point);
  json["set"] = plan.overrides;
  json["step_time_s"] = plan.train().step_time.value();
  json["estimate_s"] = plan.estimate.value();
  json["mfu"] = plan.train().mfu;
  if (plan.usd > 0.0) json["usd_per_step"] = plan.usd;
  json["joules_per_step"] = plan.joules;
  if (plan.train().time_to_train) json["time_to_train_s"] = plan.train().time_to_train->value();
  if (plan.train().cost_usd) json["cost"] = *plan.train().cost_usd;
  if (const auto& bill = plan.train().bill) {
    json["time_to_train_low_s"] = bill->shortest.value();
    json["time_to_train_high_s"] = bill->longest.value();
    if (bill->usd_low) json["cost_low"] = *bill->usd_low;
    if (bill->usd_high) json["cost_high"] = *bill->usd_high;
  }
  if (limits.any()) {
    json["over_limits"] = plan.excess - 1.0;
    json["chance_within"] = chance_within(plan.train(), limits);
  }
  json["memory_per_gpu_bytes"] = footprint_json(plan.train().memory, false);
  for (const BreakdownPart& part : breakdown_parts) {
    json["breakdown_s"][std::string(part.key)] = (plan.train().breakdown.*part.time).value();
  }
  if (plan.odds) {
    const auto step_of = [&plan](double value) { return (plan.train().step_time * (value / plan.value)).value(); };
    json["odds"] = {{"expected_s", step_of(plan.odds->expected)},
                    {"p10_s", step_of(plan.odds->low)},
                    {"p90_s", step_of(plan.odds->high)},
                    {"chance_of_best", plan.odds->chance},
                    {"expected_regret", plan.odds->regret}};
  }
  if (plan.chance_of_shortage > 0.0) json["chance_of_shortage"] = plan.chance_of_shortage;
  for (const PlanExtra extra : extras_of(plan.point)) json["extras"].push_back(name(extra));
  if (!plan.is_measured_gpu) json["measured_gpu"] = false;
  json["in_front"] = plan.in_front;
  json["why"] = plan.why;
  if (!plan.limits.empty()) json["limits"] = plan.limits;
  return json;
}

}  // namespace

std::string to_text(const PlanReport& report) {
  std::string text = fmt::format("Plans for {}  [{}]\n\n{}", report.scenario,
                                 report.ranked.empty() ? "nothing ranked" : name(report.ranked.front().result.fidelity),
                                 space_text(report.search));
  if (report.ranked.empty()) {
    return text + (report.search.complete ? fmt::format("\n  No plan fits{}.\n", least_text(report))
                                          : "\n  No plan was found until then.\n");
  }
  return text + best_text(report) + odds_text(report) + better_batch_text(report) + runners_up_text(report) +
         front_text(report) + misses_text(report);
}

std::string to_json(const PlanReport& report) {
  nlohmann::ordered_json json;
  json["scenario"] = report.scenario;
  json["objective"] = name(report.goal);
  if (!report.ranked.empty()) json["fidelity"] = name(report.ranked.front().result.fidelity);
  const PlanSearch& search = report.search;
  json["space"] = {{"plans", search.plans},
                   {"settled", search.counts.plans},
                   {"layouts", search.layouts},
                   {"estimated", search.counts.estimated},
                   {"do_not_fit", search.counts.unfit},
                   {"impossible", search.counts.impossible},
                   {"complete", search.complete}};
  if (report.least) json["least_nodes"] = report.least->nodes;
  if (const auto& better = report.better_batch) {
    json["better_batch"] = {{"global_batch", better->batch},
                            {"instead_of", better->instead_of},
                            {"gpus_per_node", better->gpus_per_node},
                            {"estimate_s", better->step.value()},
                            {"speedup", better->speedup}};
  }
  if (!report.unknowns.empty()) {
    json["winners_curse"] = report.curse - 1.0;
    for (const Unknown& one : report.unknowns) {
      json["unknowns"].push_back({{"what", one.name}, {"spread", one.spread}, {"moves_best", one.moves}});
    }
  }
  if (report.limits.time) json["limits"]["time_s"] = report.limits.time->value();
  if (report.limits.usd) json["limits"]["usd"] = *report.limits.usd;
  const auto add = [&](const char* name, const std::vector<RankedPlan>& plans) {
    json[name] = nlohmann::ordered_json::array();
    for (const RankedPlan& plan : plans) json[name].push_back(plan_json(plan, report.limits));
  };
  if (!report.machines.empty()) add("machines", report.machines);
  add("plans", report.ranked);
  add("do_not_fit", report.misses);
  return json.dump(2) + "\n";
}

std::string to_csv(const PlanReport& report) {
  std::vector<std::string> header = {"case", "base"};
  std::vector<std::string> keys;
  for (const RankedPlan& plan : report.ranked) {
    for (const std::string& change : plan.overrides) {
      const std::string key = change.substr(0, change.find('='));
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  header.insert(header.end(), keys.begin(), keys.end());
  header.insert(header.end(), predicted_columns().begin(), predicted_columns().end());
  std::string text = csv_line(header) + "\n";
  for (std::size_t i = 0; i < report.ranked.size(); ++i) {
    const RankedPlan& plan = report.ranked[i];
    std::vector<std::string> cells = {fmt::format("plan {}", i + 1), report.file};
    for (const std::string& key : keys) {
      const auto has_key = [&](const std::string& change) { return change.starts_with(key + "="); };
      const auto found = std::ranges::find_if(plan.overrides, has_key);
      cells.push_back(found == plan.overrides.end() ? "" : found->substr(key.size() + 1));
    }
    const std::vector<std::string> predicted = predicted_cells(plan.result);
    cells.insert(cells.end(), predicted.begin(), predicted.end());
    text += csv_line(cells) + "\n";
  }
  return text;
}

}  // namespace foretrain
