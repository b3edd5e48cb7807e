#include "reports/measured/text_fit.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/print/table.hpp"

namespace foretrain {
namespace {

nlohmann::ordered_json constants_json(const std::vector<RobustConstant>& constants) {
  auto json = nlohmann::ordered_json::object();
  for (const RobustConstant& constant : constants) json[constant.name] = constant.after;
  return json;
}

nlohmann::ordered_json errors_json(const std::vector<PointErrors>& errors) {
  auto json = nlohmann::ordered_json::array();
  for (const PointErrors& e : errors) {
    json.push_back({{"group", e.group}, {"gpu", e.family}, {"n", e.points}, {"mape", e.mape}, {"bias", e.bias}});
  }
  return json;
}

PointErrors of_all(const std::vector<PointErrors>& errors) {
  return together(errors, [](const PointErrors&) { return true; });
}

std::string machine_text(const GpuCalibration& fit) {
  const MeasuredGpu& gpu = fit.machine.gpus.front();
  std::string text = fmt::format("{} x {}, driver {}, measured {}\n", fit.machine.gpus.size(), gpu.name,
                                 fit.machine.driver, fit.machine.date);
  text += fit.known
              ? fmt::format("known as {}: peak rates are those of its datasheet\n", fit.gpu)
              : fmt::format("unknown to the catalogue: described as {} from its driver and architecture\n", fit.gpu);
  return text;
}

std::string suites_text(const GpuCalibration& fit) {
  TextTable table("lrrrrrrrr",
                  {"suite", "failed", "skipped", "measured", "= fitted", "held out", "read off", "unused", "left out"});
  for (const auto& [name, count] : fit.suites) {
    std::vector<std::string> row = {name};
    for (const int number : {count.failed, count.skipped, count.measured, count.fitted, count.held_out, count.direct,
                             count.drawn, count.left_out}) {
      row.push_back(fmt::format("{}", number));
    }
    table.add_row(row);
  }
  std::string text = table.text(2);
  for (const std::string& note : fit.notes) text += "  " + note + "\n";
  return text;
}

std::string with_unit(const std::string& name, double value) {
  const std::string& unit = constant_row(name).unit;
  return fmt::format("{:.4g}{}{}", value, unit.empty() ? "" : " ", unit);
}

/// Whether each stage's constants are kept, by points that their fit did not see.
std::string stages_text(const GpuCalibration& fit) {
  TextTable table("lrrrrl", {"stage", "points", "left out", "as published", "as fitted", ""});
  for (const StageTrial& trial : fit.stages) {
    const bool judged = trial.judged > 0;
    table.add_row({trial.name, fmt::format("{}", trial.points), fmt::format("{}", trial.judged),
                   judged ? percent_text(trial.published) : "", judged ? percent_text(trial.fitted) : "",
                   trial.adopted ? "kept" : "no better: as published"});
  }
  return fit.stages.empty() ? "" : table.text(2) + "\n";
}

std::string constants_text(const GpuCalibration& fit) {
  TextTable table("lrrr", {"constant", "published", "fitted", "standard error"});
  for (const RobustConstant& constant : fit.direct) {
    table.add_row({constant.name, "", with_unit(constant.name, constant.after),
                   with_unit(constant.name, constant.standard_error)});
  }
  for (const RobustConstant& constant : fit.fitted) {
    table.add_row({constant.name, with_unit(constant.name, constant.before), with_unit(constant.name, constant.after),
                   constant.at_bound ? "at its bound" : with_unit(constant.name, constant.standard_error)});
  }
  std::string text = table.text(2);
  if (fit.undetermined.empty()) return text;
  text += "\nNot determined, as published:\n";
  for (const Undetermined& one : fit.undetermined) text += fmt::format("  {}: {}\n", one.name, one.why);
  return text;
}

std::string errors_text(const GpuCalibration& fit) {
  TextTable table("llrrrrl", {"points", "", "n", "MAPE", "bias", "worst", ""});
  for (const PointErrors& group : fit.errors) {
    table.add_row({group.group, group.held_out ? "held out" : "fitted", fmt::format("{}", group.points),
                   percent_text(group.mape), signed_percent(group.bias), signed_percent(group.worst),
                   group.worst_point});
  }
  return table.text(2);
}

std::string bars_text(const GpuCalibration& fit) {
  std::string text;
  for (const AccuracyBar& bar : fit.bars) {
    if (bar.points == 0) {
      text += fmt::format("  {}: nothing measured, bar {} not tested\n", bar.name, percent_text(bar.limit));
      continue;
    }
    text += fmt::format("  {}: MAPE {} over {} points {}, bar {}: {}\n", bar.name, percent_text(bar.mape), bar.points,
                        bar.held_out ? "held out" : "that were fitted (none was held out)", percent_text(bar.limit),
                        bar.met() ? "met" : "NOT met");
  }
  return text;
}

}  // namespace

std::string fit_json(const FitResult* result, const std::vector<LeftOut>& left_out) {
  nlohmann::ordered_json json;
  if (result != nullptr) {
    json["constants"] = constants_json(result->found.constants);
    for (const Undetermined& one : result->found.undetermined) json["undetermined"][one.name] = one.why;
    json["groups"] = errors_json(result->errors);
  }
  for (const LeftOut& left : left_out) {
    json["left_out"].push_back({{"gpu", left.gpu},
                                {"mape", of_all(left.predicted).mape},
                                {"constants", constants_json(left.fitted.found.constants)},
                                {"by_rule", constants_json(left.by_rule)},
                                {"groups", errors_json(left.predicted)}});
  }
  return json.dump(2);
}

std::string to_text(const GpuCalibration& fit) {
  std::string text = machine_text(fit) + "\n" + suites_text(fit) + "\n" + stages_text(fit) + constants_text(fit);
  if (!fit.errors.empty()) text += "\n" + errors_text(fit);
  if (!fit.matmul_note.empty()) text += "\n" + fit.matmul_note + "\n";
  return text + "\n" + bars_text(fit);
}

}  // namespace foretrain
