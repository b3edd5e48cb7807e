// A diagnosis as text and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/base/format.hpp"
#include "reports/diagnose/diagnosis.hpp"
#include "reports/print/table.hpp"
#include "reports/result/text.hpp"

namespace foretrain {

namespace {

constexpr std::size_t shown_causes = 6;
constexpr double least_likelihood = 0.01;  ///< of what is shown behind the first

std::string whole_percent(double share) { return fmt::format("{:.0f} %", share * 100.0); }

std::string verdict_of(const StepDiagnosis& d) {
  const double difference = d.measured / d.expected - 1.0;
  const std::string where = d.within() ? "within the interval"
                            : d.measured > d.expected
                                ? "slower than the interval"
                                : "faster than the interval: does the scenario describe this run?";
  return fmt::format("{} ({})", signed_percent(difference), where);
}

std::string causes_text(const StepDiagnosis& d, std::size_t shown) {
  TextTable table("rllrr", {"", "cause", "severity", "step", "likelihood"});
  for (std::size_t i = 0, none = shown; i <= shown; ++i) {
    if (i < none && d.causes[i].likelihood < d.none) none = i;
    if (i == none) {
      table.add_row({"", d.explained ? "prediction error (no cause needed)" : "none: no single cause explains it", "",
                     format_seconds(d.expected), whole_percent(d.none)});
    }
    if (i == shown) break;
    const StepCause& cause = d.causes[i];
    table.add_row(
        {std::to_string(i + 1), cause.name, cause.size, format_seconds(cause.step), whole_percent(cause.likelihood)});
  }
  double others = 0.0;
  for (std::size_t i = shown; i < d.causes.size(); ++i) others += d.causes[i].likelihood;
  if (shown < d.causes.size()) {
    table.add_row({"", fmt::format("{} others (--json)", d.causes.size() - shown), "", "", whole_percent(others)});
  }
  return table.text(page_indent);
}

std::string commands_text(const StepDiagnosis& d, std::size_t shown) {
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("  {}  {}\n", i + 1, d.causes[i].command);
    text += fmt::format("     {}\n", wrap(d.causes[i].look_at, page_width() - 5, 5));
  }
  return text;
}

}  // namespace

std::string to_text(const StepDiagnosis& d, const std::optional<TraceDiagnosis>& traces) {
  std::string text = fmt::format("{}\n", d.scenario);
  TextTable table("ll");
  table.add_row({"Expected", fmt::format("{} {}", format_seconds(d.expected),
                                         interval(format_seconds(d.low), format_seconds(d.high)))});
  table.add_row({"Measured", fmt::format("{}, {}", format_seconds(d.measured), verdict_of(d))});
  if (!d.source.empty()) table.add_row({"", d.source});
  text += table.text(page_indent);
  if (traces) text += to_text(*traces);
  std::size_t shown = std::min(shown_causes, d.causes.size());
  while (shown > 1 && d.causes[shown - 1].likelihood < least_likelihood) --shown;
  if (shown > 0) {
    text +=
        fmt::format("\n{} (likelihood = fit x prior)\n{}",
                    d.within() ? "Possible single causes" : "Single causes, severity fitted", causes_text(d, shown));
    if (d.explained) text += "\nChecks\n" + commands_text(d, shown);
  }
  if (!d.explained && d.measured > d.high) {
    text += "\nNo single cause explains it: several add up, or the scenario describes another run\n";
  }
  if (!d.changes.empty()) {
    text += fmt::format("\nSingle changes from the measured {}", format_seconds(d.measured));
    if (d.measured > d.high && shown > 0 && d.explained) {
      const Seconds rest = d.measured - d.causes.front().step;
      text += ", if cause 1 is right";
      if (rest > 0.01 * d.measured) text += fmt::format(" ({} unexplained)", format_seconds(rest));
    }
    text += "\n";
    TextTable changes("lrr", {"change", "speed-up", "step time"});
    for (const StepChange& change : d.changes) {
      const bool fixes = shown > 0 && change.name == d.causes.front().remedy;
      changes.add_row({change.name + (fixes ? " (fixes cause 1)" : ""), signed_percent(change.speedup - 1.0),
                       format_seconds(change.step)});
    }
    text += changes.text(page_indent);
  }
  return text;
}

std::string to_json(const StepDiagnosis& d, const std::optional<TraceDiagnosis>& traces) {
  nlohmann::ordered_json json;
  json["scenario"] = d.scenario;
  json["measured_s"] = d.measured.value();
  json["expected_s"] = d.expected.value();
  json["low_s"] = d.low.value();
  json["high_s"] = d.high.value();
  json["within"] = d.within();
  if (!d.source.empty()) json["source"] = d.source;
  if (traces) json["trace"] = to_json(*traces);
  json["likelihood_of_none"] = d.none;
  json["single_cause_explains"] = d.explained;
  json["causes"] = nlohmann::json::array();
  for (const StepCause& cause : d.causes) {
    nlohmann::ordered_json one = {{"name", cause.name}, {"step_s", cause.step.value()}};
    if (!cause.size.empty()) one["severity"] = cause.size;
    if (cause.pause > Seconds(0.0)) one["pause_s"] = cause.pause.value();
    if (cause.share) one["size"] = *cause.share;
    if (!cause.overrides.empty()) one["set"] = cause.overrides;
    one["explained"] = cause.explained;
    one["likelihood"] = cause.likelihood;
    one["command"] = cause.command;
    one["look_at"] = cause.look_at;
    json["causes"].push_back(std::move(one));
  }
  json["changes"] = nlohmann::json::array();
  for (const StepChange& change : d.changes) {
    json["changes"].push_back({{"name", change.name},
                               {"set", change.overrides},
                               {"speedup", change.speedup},
                               {"step_s", change.step.value()}});
  }
  return json.dump(2);
}

}  // namespace foretrain
