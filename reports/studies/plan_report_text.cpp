#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "model/base/csv.hpp"
#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "reports/print/names.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"
#include "reports/result/csv.hpp"
#include "reports/result/json.hpp"
#include "reports/result/text.hpp"
#include "reports/studies/plan_report.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_alternatives = 5, most_in_front = 12;
constexpr double least_curse = 1.0005;  ///< bias of the fastest prediction that is printed
constexpr double near_capacity = 1.5;   ///< plans that exceed memory by more are no alternative

std::string count_text(std::int64_t number) { return grouped(std::to_string(number)); }

constexpr const char* unmeasured_gpu = "no training step of this GPU generation is measured";

std::string name_of(const RankedPlan& plan) {
  return (plan.hardware.empty() ? "" : plan.hardware + ": ") + describe(plan.point);
}

/// Extras of the best plan that were not allowed.
std::string extras_text(const PlanReport& report) {
  if (!report.without_extras) return "";
  std::string extras;
  for (const PlanExtra extra : extras_of(report.ranked.front().point)) {
    extras += (extras.empty() ? "" : ", ") + std::string(name(extra));
  }
  return labelled("Without " + extras,
                  std::isfinite(*report.without_extras)
                      ? fmt::format("the best plan takes {:.2g} times as long", *report.without_extras)
                      : "no plan fits");
}

std::string space_text(const PlanSearch& search) {
  const PlanCounts& counts = search.counts;
  const std::string of_all = search.complete ? "" : " of " + count_text(search.plans);
  std::string text = fmt::format(
      "{}{} candidates in {} layouts: {} evaluated, {} exceed memory, ", count_text(counts.plans), of_all,
      count_text(static_cast<std::int64_t>(search.layouts)), count_text(counts.estimated), count_text(counts.unfit));
  if (counts.impossible > 0) text += fmt::format("{} infeasible, ", count_text(counts.impossible));
  text += "rest pruned by lower bound";
  if (!search.complete) text += ". Interrupted: the fastest plan may be among the candidates not searched";
  return paragraph(text);
}

/// "29.7 days (90 % interval …) · 1.46 M USD (90 % interval …)", or a step's where the training's length is not stated.
std::string outlook_text(const RankedPlan& plan) {
  const TrainResult& train = plan.train();
  if (train.time_to_train) return length_text(train) + (train.cost_usd ? " · " + cost_text(train) : "");
  return "step " + format_seconds(train.step_time) + (plan.usd > 0.0 ? fmt::format(" · {:.3f} USD", plan.usd) : "");
}

/// The probability that the limits hold, and by how much they are exceeded.
std::string limits_text(const RankedPlan& plan, const PlanLimits& limits) {
  if (!limits.any()) return "";
  std::string chance = "met with probability " + format_chance(chance_within(plan.train(), limits));
  if (plan.excess <= 1.0) return chance;
  const std::string by = plan.excess < 2.0 ? fmt::format("exceeded by {}", format_percent(plan.excess - 1.0))
                                           : fmt::format("exceeded {:.1f} times", plan.excess);
  return by + ", " + chance;
}

/// "tensor 4 (was 8) · recompute none (was full)": settings by which the plan differs from the user's own.
std::string changes_text(const Result& plan, const Result& own) {
  std::string text;
  const auto value_in = [](const Result& result, const Setting& setting, const std::string& absent) {
    const auto found = std::ranges::find(result.settings, label_of(setting), label_of);
    return found != result.settings.end() ? found->value : absent;
  };
  const auto add = [&](const Setting& setting, const std::string& now, const std::string& before) {
    if (setting.name.empty() || now == before) return;
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : " · ", label_of(setting), now,
                        before.empty() ? "new" : "was " + before);
  };
  for (const Setting& setting : plan.settings)
    add(setting, setting.value, value_in(own, setting, is_whole_number(setting.value) ? "1" : ""));
  for (const Setting& setting : own.settings) {  // parallelism that the plan does without
    if (is_whole_number(setting.value) && value_in(plan, setting, "").empty()) add(setting, "1", setting.value);
  }
  return text.empty() ? "none" : text;
}

/// The prediction of the plan that the scenario states.
std::string own_plan_text(const PlanReport& report) {
  if (!report.own) return "";
  const Result &own = *report.own, &best = report.ranked.front().result;
  const double faster = best.train()->samples_per_second / own.train()->samples_per_second / report.curse;
  std::string text = format_seconds(own.time()) + interval_of(own);
  text += fmt::format("; the best plan{}: {:.3g} times the samples/s", report.curse > least_curse ? " (corrected)" : "",
                      faster);
  if (!own.train()->memory.fits()) text = "does not fit; " + text;
  return labelled("Your scenario", text) + labelled("Changes", changes_text(best, own)) +
         (report.with_command ? "" : labelled("To apply", "add --command"));
}

/// A command with the plan's keys.
std::string command_text(const std::string& command, const PlanReport& report, const RankedPlan& plan) {
  std::string text = fmt::format("\nforetrain {} {}", command, shell_word(report.file));
  for (const std::string& change : plan.overrides) text += fmt::format(" \\\n  --set {}", shell_quoted(change));
  return text + "\n";
}

/// Commands that predict and export the plan.
std::string commands_text(const PlanReport& report, const RankedPlan& plan) {
  std::string text = command_text("predict", report, plan);
  if (!report.exporter.empty()) text += command_text("export " + report.exporter, report, plan);
  return text;
}

std::string best_text(const PlanReport& report) {
  const RankedPlan& best = report.ranked.front();
  const TrainResult& train = best.train();
  const MemoryFootprint& memory = train.memory;
  std::string nodes;
  for (const Setting& setting : best.result.settings) {
    if (setting.line == "Nodes") nodes += (nodes.empty() ? "" : " · ") + setting.value;
  }
  std::string text = best.excess > 1.0
                         ? fmt::format("\nNo plan trains within {}; the nearest\n", describe(report.limits))
                         : "\nBest plan\n";
  if (!nodes.empty()) text += labelled("Nodes", nodes);
  text += labelled("Plan", name_of(best)) + extras_text(report);
  if (!best.is_measured_gpu) text += labelled("Validation", unmeasured_gpu);
  const std::string predicted = format_seconds(train.step_time), interval = interval_of(best.result);
  text +=
      labelled("Step time", report.curse > least_curse ? fmt::format("{} = {} predicted{} + {:.1f} % selection bias",
                                                                     format_seconds(train.step_time * report.curse),
                                                                     predicted, interval, 100.0 * (report.curse - 1.0))
                                                       : predicted + interval);
  text += own_plan_text(report);
  text += labelled("MFU", format_percent(train.mfu) + (report.curse > least_curse ? " (of the predicted step)" : ""));
  text += labelled("Peak memory", of_capacity(memory.total(), memory.capacity));
  if (train.time_to_train) text += labelled("Time to train", length_text(train));
  if (train.time_to_train && train.cost_usd) text += labelled("Cost", cost_text(train));
  if (report.limits.any())
    text += labelled("Limits", describe(report.limits) + ": " + limits_text(best, report.limits));
  for (const std::string& limit : best.limits) text += labelled("Network", limit);
  return text;
}

std::string percent_of(double share) { return fmt::format("{:.0f} %", 100.0 * share); }

std::string odds_text(const PlanReport& report) {
  const RankedPlan& best = report.ranked.front();
  if (!best.odds) return "";
  std::string text = "\nConfidence\n";
  text += labelled(
      "Fastest in",
      fmt::format("{} of random draws of the uncertain constants; on average over all draws this plan is {:.1f} % "
                  "slower than the fastest",
                  percent_of(best.odds->chance), 100.0 * best.odds->regret));
  if (best.chance_of_shortage >= 0.005) {
    text +=
        labelled("Out of memory", fmt::format("probability {} by errors of the learned runs; counted as {:.0f} times "
                                              "the step time",
                                              format_chance(best.chance_of_shortage), shortage_slowdown));
  }
  if (best.caution >= 1.005) {
    text += labelled("Beyond runs",
                     fmt::format("larger than the learned runs: counted as {:.2f} times the step time", best.caution));
  }
  if (report.is_simpler) {
    text +=
        labelled("Choice", fmt::format("simplest of the plans within {:.2g} % of the fastest", 100 * noise_of_runs));
  }
  return text;
}

std::string better_batch_text(const PlanReport& report) {
  if (!report.better_batch) return "";
  const BetterBatch& better = *report.better_batch;
  std::string text = fmt::format("Global batch {} instead of {} uses all {} GPUs per node: step {}, {} more samples/s",
                                 better.batch, better.instead_of, better.gpus_per_node, format_seconds(better.step),
                                 format_percent(better.speedup - 1.0));
  if (const auto usd = report.ranked.front().train().cost_usd) {
    text += fmt::format(", {:.0f} USD to train instead of {:.0f}", *usd / better.speedup, *usd);
  }
  return "\n" + paragraph(text + " (estimate)");
}

std::string alternatives_text(const PlanReport& report) {
  TextTable table("rrrll", {"rank", "predicted", "fastest in", "plan", "why not first"});
  std::set<PlanKind> shown{kind_of(report.ranked.front())};
  for (std::size_t i = 1; i < report.ranked.size() && shown.size() <= most_alternatives; ++i) {
    const RankedPlan& plan = report.ranked[i];
    if (!shown.insert(kind_of(plan)).second) continue;
    table.add_row({std::to_string(i + 1), format_seconds(plan.train().step_time),
                   plan.odds ? percent_of(plan.odds->chance) : "-", name_of(plan), plan.why});
  }
  return shown.size() < 2
             ? ""
             : "\nAlternatives that differ in more than gradient synchronisation\n" + table.text(page_indent);
}

std::string machines_text(const PlanReport& report) {
  std::string text = "\nBest plan per machine type and number of nodes, cheapest first (* Pareto front)\n";
  for (const RankedPlan& plan : report.machines) {
    const auto indented = [&text](const std::string& line) {
      text += fmt::format("{:6}{}\n", "", wrap(line, page_width() - 6, 6));
    };
    text += fmt::format("  {} {}\n", plan.in_front ? "*" : " ",
                        wrap(fmt::format("{}: {}", plan.machines, outlook_text(plan)), page_width() - 4, 6));
    indented(plan.hardware == plan.machines ? describe(plan.point) : name_of(plan));
    if (!plan.is_measured_gpu) indented(unmeasured_gpu);
    if (report.limits.any()) indented("limits " + limits_text(plan, report.limits));
  }
  return text;
}

std::string front_text(const PlanReport& report) {
  if (!report.machines.empty()) return machines_text(report);
  const bool priced = std::ranges::any_of(report.ranked, [](const RankedPlan& plan) { return plan.usd > 0.0; });
  std::vector<std::string> header = {"step time", "memory", "plan"};
  if (priced) header.insert(header.begin() + 1, "USD per step");
  TextTable table(priced ? "rrrl" : "rrl", header);
  std::size_t rows = 0;
  std::string smallest;
  for (const RankedPlan& plan : report.ranked) {
    const std::string memory = format_bytes(plan.train().memory.total());
    if (!plan.in_front || rows == most_in_front || (!priced && memory == smallest)) continue;
    ++rows;
    smallest = memory;
    std::vector<std::string> row = {format_seconds(plan.train().step_time), memory, name_of(plan)};
    if (priced) row.insert(row.begin() + 1, fmt::format("{:.3g}", plan.usd));
    table.add_row(std::move(row));
  }
  return fmt::format("\nPareto front of step time, {}memory\n{}", priced ? "cost and " : "", table.text(page_indent));
}

std::string misses_text(const PlanReport& report) {
  TextTable table("rll", {"step time", "plan", "shortage"});
  bool any = false;
  for (const RankedPlan& plan : report.infeasible) {
    const MemoryFootprint& memory = plan.train().memory;
    if (memory.total() > near_capacity * memory.capacity) continue;
    table.add_row({format_seconds(plan.train().step_time), name_of(plan), plan.why});
    any = true;
  }
  return any ? "\nFaster plans that exceed memory\n" + table.text(page_indent) : "";
}

/// On how many machines one would.
std::string least_text(const PlanReport& report) {
  if (!report.least) return "";
  return fmt::format("; smallest cluster on which a plan fits: {} nodes, {} GPUs", report.least->nodes,
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
  std::string text =
      report.ranked.empty() ? "Plans for " + report.scenario : title_of(report.ranked.front().result, "Plans for ");
  text += "\n\n" + space_text(report.search);
  if (report.ranked.empty()) {
    return text + (report.search.complete ? fmt::format("\n  No plan fits{}.\n", least_text(report))
                                          : "\n  No plan found before the interruption.\n");
  }
  text += best_text(report);
  if (report.with_command) text += commands_text(report, report.ranked.front());
  return text + odds_text(report) + alternatives_text(report) + better_batch_text(report) + front_text(report) +
         misses_text(report);
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
  add("do_not_fit", report.infeasible);
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
