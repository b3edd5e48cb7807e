// An explanation as text, JSON and a picture.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "reports/explain/explanation.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"
#include "reports/result/largest_change.hpp"
#include "reports/result/text.hpp"

namespace foretrain {

namespace {

constexpr double least_change = 0.005;  ///< of the time or the throughput; smaller changes count as none

std::string sets_of(const WhatIf& remedy) {
  std::string text;
  for (const std::string& override : remedy.overrides)
    text += (text.empty() ? "" : " ") + ("--set " + shell_word(override));
  return text;
}

/// Of changes that leave the work of kernels as it is: communication that runs beside them slows them.
std::string overlap_note(const WhatIf& remedy, const LargestChange& most) {
  const auto synchronises = [](const std::string& set) {
    return set.starts_with("plan.sync") || set.starts_with("plan.zero");
  };
  if (most.part != &Breakdown::compute || remedy.overrides.empty() ||
      !std::ranges::all_of(remedy.overrides, synchronises))
    return "";
  return most.time < Seconds(0.0) ? " (less slowdown by concurrent communication)"
                                  : " (more slowdown by concurrent communication)";
}

/// Why a change of the plan has its effect, where the step's parts do not say it.
std::string cause_text(const WhatIf& remedy, const Result& before) {
  if (!remedy.scenario) return "";
  const Plan& plan = remedy.scenario->plan;
  const auto* train = std::get_if<TrainWorkload>(&remedy.scenario->workload);
  const auto ranks = std::ranges::find(before.settings, "plan.data", &Setting::key);
  if (ranks != before.settings.end() && ranks->value != std::to_string(plan.data)) {
    const bool servers = remedy.result->train()->parameter_server && before.train()->parameter_server;
    return fmt::format("{} {} instead of {}, ", plan.data, servers ? "workers" : "data-parallel ranks", ranks->value);
  }
  const std::int64_t passes =
      train == nullptr ? 1 : train->global_batch / (std::int64_t{plan.data} * train->micro_batch);
  const bool set = !remedy.overrides.empty() && remedy.overrides.front().starts_with("plan.zero=");
  return set && divides_gradients(plan) && passes > 1
             ? fmt::format("a gradient reduce-scatter per micro-batch ({}), ", passes)
             : "";
}

/// "ZeRO-1: exposed communication -164 ms": the change, and the part of the step that it changes most.
std::string change_text(const Explanation& e, const WhatIf& remedy) {
  const TrainResult *now = remedy.result->train(), *before = e.unchanged().train();
  if (now == nullptr || before == nullptr) return remedy.name;
  const LargestChange most = largest_change(*now, *before);
  const double samples = before->samples_per_second * before->step_time.value();
  const bool same_batch = std::abs(samples / (now->samples_per_second * now->step_time.value()) - 1.0) < 1e-3;
  return fmt::format("{}: {}{} {}{}{}", remedy.name, cause_text(remedy, e.result), most.name, signed_seconds(most.time),
                     most.also,
                     same_batch ? overlap_note(remedy, most)
                                : fmt::format(" (per {} samples)", grouped(fmt::format("{:.0f}", samples))));
}

std::string diagnosis_text(const Explanation& e) {
  if (e.path.empty()) return "";
  TextTable table("lrllrl");
  table.add_row({"", "share", "of", "", "threshold", ""});
  for (const Finding& f : e.path) {
    table.add_row({f.question, percent_text(f.share), f.of, f.yes() ? "above" : "below", percent_text(f.limit),
                   f.yes() ? "◄" : ""});
  }
  std::string bottleneck = "Bottleneck: " + e.bottleneck;
  const Sensitivity most = e.sensitivities.empty() ? Sensitivity() : e.sensitivities.front();
  const std::string link = most.resource.starts_with("network") ? "network" : most.resource;
  if (!link.empty() && bottleneck.find(link) == std::string::npos) {
    bottleneck += fmt::format("; most sensitive to {} (elasticity {:.2f})", most.resource, most.share);
  }
  return fmt::format("\n{}\n{}  Usual remedies: {}\n", wrap(bottleneck, page_width(), 2), table.text(2),
                     wrap(e.advice, page_width() - 18, 18));
}

/// The fidelity of everything below, where it is not the scenario's.
std::string what_ifs_text(const Explanation& e) {
  if (!e.estimate) return "";
  std::string text = fmt::format("Everything below uses fidelity {}, which predicts {} for this scenario.",
                                 name(e.estimate->fidelity), format_seconds(e.estimate->time()));
  if (e.estimate->fidelity == Fidelity::estimate) {
    text += fmt::format(" Estimates ignore contention between transfers; --what-ifs {} simulates it, in minutes.",
                        name(e.result.fidelity));
  }
  return "\n" + wrap(text, page_width(), 0) + "\n";
}

std::string spread_text(const Explanation& e) {
  if (!e.spread) return "";
  const bool own = e.result.train() && e.result.train()->spread;
  const std::string jitter = own ? "the scenario's jitter"
                                 : fmt::format("illustrative, with assumed jitter: compute {}, network {}",
                                               percent_text(usual_jitter.compute), percent_text(usual_jitter.network));
  const std::string text = fmt::format("P50 {} · P90 {} · P99 {} ({})", format_seconds(e.spread->p50),
                                       format_seconds(e.spread->p90), format_seconds(e.spread->p99), jitter);
  return "\nStep-time percentiles (variation between steps, not prediction error)\n" + paragraph(text);
}

/// The critical path by kind of task.
std::string path_text(const Explanation& e) {
  if (e.critical_path.empty()) return "";
  TextTable table("lrrl");
  for (const PathPart& part : e.critical_path) {
    const double share = part.time / e.result.time();
    const std::string name = e.result.train() ? label_of_collective(*e.result.train(), part.name) : part.name;
    if (share >= least_share)
      table.add_row({name, format_seconds(part.time), percent_text(share), bar(share, bar_width / 2)});
  }
  return "\nCritical path\n" + table.text(2);
}

std::string sensitivity_text(const Explanation& e) {
  TextTable table("lrrrl", {"resource", "10 % faster", "10 % slower", "elasticity", ""});
  for (const Sensitivity& s : e.sensitivities) {
    const double faster = s.faster / e.unchanged().time() - 1.0, slower = s.slower / e.unchanged().time() - 1.0;
    if (std::max(std::abs(faster), std::abs(slower)) < least_change / 10.0) continue;
    table.add_row({s.resource, signed_percent(faster), signed_percent(slower), fmt::format("{:.2f}", s.share),
                   bar(s.share, bar_width / 2)});
  }
  return fmt::format("\nSensitivity: change of the {} (elasticity: % per % of resource speed)\n{}",
                     e.result.train() ? "step time" : "time", table.text(2));
}

std::string remedies_text(const Explanation& e) {
  const bool trains = e.result.train() != nullptr;
  const std::vector<std::string> header = {trains ? "samples/s" : "speed-up", trains ? "step time" : "time",
                                           trains ? "change: part of the step that changes most" : "change"};
  TextTable better("rrl", header), worse("rrl", header);
  std::string same, impossible;
  bool helps = false, hurts = false;
  for (const WhatIf& r : e.remedies) {
    if (!r.result) {
      impossible += fmt::format("  {}\n", wrap(r.name + ": " + r.why_not, page_width() - 4, 4));
    } else if (std::abs(r.speedup - 1.0) < least_change) {
      same += (same.empty() ? "" : ", ") + r.name;
    } else {
      const bool fits = !r.result->train() || r.result->train()->memory.fits(), faster = r.speedup > 1.0;
      TextTable& table = faster ? better : worse;
      table.add_row({signed_percent(r.speedup - 1.0), format_seconds(r.result->time()) + (fits ? "" : " (OOM)"),
                     change_text(e, r)});
      if (faster) table.add_row({"", "", sets_of(r)});
      (faster ? helps : hurts) = true;
    }
  }
  if (e.remedies.empty()) return "";
  std::string text = fmt::format("\nSingle changes, {} first\n", trains ? "highest throughput" : "fastest") +
                     (helps ? better.text(2) : std::string("  none of those tried is faster\n"));
  if (!same.empty()) text += paragraph(fmt::format("No effect (below {:.2g} %): {}", 100.0 * least_change, same));
  if (hurts) text += "\nSlower changes\n" + worse.text(2);
  return impossible.empty() ? text : text + "\nInfeasible changes\n" + impossible;
}

/// Parameter servers against the fastest all-reduce that NCCL has, where both were predicted.
std::string servers_text(const Explanation& e) {
  const TrainResult* servers = nullptr;
  const TrainResult* all_reduce = nullptr;
  std::string all_reduce_name = "this scenario";
  const auto look_at = [&](const Result& result, const std::string& name) {
    const TrainResult* train = result.train();
    if (train == nullptr) return;
    if (train->parameter_server) {
      servers = servers == nullptr ? train : servers;
    } else if (all_reduce == nullptr) {  // the fastest change comes first
      all_reduce = train;
      all_reduce_name = name;
    }
  };
  look_at(e.unchanged(), all_reduce_name);
  const auto of_nccl = [](const std::string& name) {
    return name.find("all-reduce") != std::string::npos && !name.starts_with("halving") && !name.starts_with("hierar");
  };
  for (const WhatIf& r : e.remedies) {
    const TrainResult* train = r.result ? r.result->train() : nullptr;
    if (train != nullptr && (train->parameter_server || of_nccl(r.name))) look_at(*r.result, r.name);
  }
  if (servers == nullptr || all_reduce == nullptr) return "";
  const ParameterServerResult& of = *servers->parameter_server;
  const Seconds bound = std::max({of.compute_bound, of.link_bound, of.server_bound});
  const char* by = bound == of.compute_bound ? "compute on the workers"
                   : bound == of.link_bound  ? "the servers' links"
                                             : "the servers' CPU";
  const bool faster = servers->samples_per_second > all_reduce->samples_per_second;
  std::string text = fmt::format(
      "{} parameter server{} {} than {}: {} samples/s against {}. Lower bounds of the step: worker compute {}, busiest "
      "server link {}, server CPU {}. The bottleneck is {}. Without servers, {} of communication is exposed.",
      of.servers, of.servers == 1 ? " is" : "s are", faster ? "faster" : "slower", all_reduce_name,
      format_count(servers->samples_per_second), format_count(all_reduce->samples_per_second),
      format_seconds(of.compute_bound), format_seconds(of.link_bound), format_seconds(of.server_bound), by,
      format_seconds(all_reduce->breakdown.exposed_communication));
  for (const std::string& warning : e.result.warnings) {
    if (warning.find("one flow to another node") != std::string::npos) text += " " + warning + ".";
  }
  return "\nParameter servers\n" + paragraph(text);
}

}  // namespace

std::string to_text(const Explanation& e) {
  std::string time = format_seconds(e.result.time());
  if (e.result.train()) time += fmt::format(" · {} samples/s", format_count(e.result.train()->samples_per_second));
  const std::string failures = e.result.train() ? goodput_section(*e.result.train()) : "";
  return title_of(e.result) + "\n\n" + labelled(e.result.train() ? "Step time" : "Time", time) + diagnosis_text(e) +
         path_text(e) + what_ifs_text(e) + spread_text(e) + sensitivity_text(e) + remedies_text(e) + servers_text(e) +
         failures;
}

std::string to_json(const Explanation& e) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["scenario"] = e.result.scenario;
  json["fidelity"] = name(e.result.fidelity);
  json["time_s"] = e.result.time().value();
  if (e.result.train()) json["samples_per_second"] = e.result.train()->samples_per_second;
  if (e.estimate) json["what_ifs"] = {{"fidelity", name(e.estimate->fidelity)}, {"time_s", e.estimate->time().value()}};
  json["bottleneck"] = e.bottleneck;
  json["advice"] = e.advice;
  json["critical_path"] = Json::array();
  for (const PathPart& part : e.critical_path) {
    json["critical_path"].push_back({{"on", part.name}, {"time_s", part.time.value()}});
  }
  if (e.spread) {
    json["step_time_percentiles_s"] = {
        {"p50", e.spread->p50.value()}, {"p90", e.spread->p90.value()}, {"p99", e.spread->p99.value()}};
  }
  json["path"] = Json::array();
  for (const Finding& f : e.path) {
    json["path"].push_back({{"question", f.question}, {"share", f.share}, {"limit", f.limit}, {"yes", f.yes()}});
  }
  json["sensitivities"] = Json::array();
  for (const Sensitivity& s : e.sensitivities) {
    json["sensitivities"].push_back({{"resource", s.resource},
                                     {"share", s.share},
                                     {"faster_s", s.faster.value()},
                                     {"slower_s", s.slower.value()},
                                     {"scale", resource_scale}});
  }
  json["remedies"] = Json::array();
  for (const WhatIf& r : e.remedies) {
    Json one = {{"change", r.name}, {"set", r.overrides}};
    if (r.result) {
      one["speedup"] = r.speedup;
      one["time_s"] = r.result->time().value();
      one["fits"] = !r.result->train() || r.result->train()->memory.fits();
    } else {
      one["why_not"] = r.why_not;
    }
    json["remedies"].push_back(std::move(one));
  }
  return json.dump(2);
}

Figure to_figure(const Explanation& e) {
  Panel panel;
  panel.title = e.result.scenario;
  panel.subtitle = fmt::format("{}: change of the time", format_seconds(e.result.time()));
  panel.width = 520;
  panel.rows = true;
  Series faster{.name = "resource 10 % faster", .colour = area_palette[0]},
      slower{.name = "10 % slower", .colour = area_palette[1]};
  double row = 0.0, widest = 0.0;
  for (const Sensitivity& s : e.sensitivities) {
    const double less = (s.faster / e.unchanged().time() - 1.0) * 100.0,
                 more = (s.slower / e.unchanged().time() - 1.0) * 100.0;
    if (std::max(std::abs(less), std::abs(more)) < least_change * 10.0) continue;
    faster.boxes.push_back({std::min(less, 0.0), std::max(less, 0.0), row - 0.35, row + 0.35});
    slower.boxes.push_back({std::min(more, 0.0), std::max(more, 0.0), row - 0.35, row + 0.35});
    panel.y.tics.push_back({row, s.resource});
    widest = std::max({widest, std::abs(less), std::abs(more)});
    row += 1.0;
  }
  panel.height = static_cast<int>(40.0 * std::max(row, 1.0));
  panel.x.name = "change of the time (%)";
  panel.x.low = -1.1 * widest;
  panel.x.high = 1.1 * widest;
  panel.y.low = row - 0.5;
  panel.y.high = -0.5;
  panel.series = {std::move(faster), std::move(slower)};
  panel.levels.push_back({.at = 0.0, .vertical = true, .dashed = false});
  return {.panels = {std::move(panel)}};
}

}  // namespace foretrain
