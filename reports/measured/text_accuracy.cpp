#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/scenario/load/cases.hpp"
#include "reports/measured/accuracy.hpp"
#include "reports/measured/subjects.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"
#include "validate/learn/learn.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_names = 10;

std::vector<std::string> statistics_cells(const std::string& name, const ErrorStatistics& s) {
  if (s.n == 0) return {name, "0"};
  return {name,
          std::to_string(s.n),
          percent_text(s.mape),
          percent_text(s.median_error),
          signed_percent(s.bias),
          s.coverage ? fmt::format("{:.0f} %", *s.coverage * 100.0) : "",
          signed_percent(s.worst)};
}

/// Anchor cases and their scale factors.
std::string anchor_section(const AccuracyReport& report) {
  std::string text;
  if (!report.anchors.empty()) {
    TextTable table("lrrrr", {"anchor", "runs", "compute", "network", "spread"});
    int runs = 0;
    for (const auto& [name, anchor] : report.anchors) {
      runs += anchor.runs;
      table.add_row({name, std::to_string(anchor.runs), fmt::format("× {:.3f}", anchor.computing),
                     anchor.waits ? fmt::format("× {:.3f}", anchor.network) : "",
                     anchor.runs > 1 ? percent_text(anchor.spread) : ""});
    }
    text += fmt::format("\nScale factors of {} per model, which the errors exclude\n\n", counted(runs, "case")) +
            table.text(page_indent);
  }
  const auto is_anchored = [](const GroupAccuracy& group) { return group.anchors > 0; };
  if (std::ranges::none_of(report.groups, is_anchored)) return text;
  int spent = 0;
  for (const GroupAccuracy& group : report.groups) spent += group.anchors;
  text += fmt::format("  Scale factors of {}, one per group, which the errors exclude:", counted(spent, "case"));
  for (const GroupAccuracy& group : report.groups) {
    if (is_anchored(group)) text += fmt::format("\n    {} × {:.3f}", group.name, group.factor);
  }
  return text + "\n";
}

/// A message that begins with "file:line:column: " without its line and column, which go into `place`.
std::string cause_of(const std::string& message, std::string& place) {
  const std::size_t end = message.find(": ");
  const std::size_t column = message.rfind(':', end == std::string::npos ? end : end - 1);
  const std::size_t line = column == 0 || column == std::string::npos ? column : message.rfind(':', column - 1);
  if (end == std::string::npos || line == std::string::npos || line + 1 >= column) return message;
  if (message.find_first_not_of("0123456789:", line) < end) return message;
  place = message.substr(line + 1, end - line - 1);
  return message.substr(0, line) + message.substr(end);
}

/// Failures: each reason once, with its first cases and their positions.
std::string failed_section(const AccuracyReport& report) {
  if (report.failed.empty()) return "";
  std::vector<std::string> reasons;
  std::map<std::string, std::vector<std::string>> cases;
  for (const FailedCase& failed : report.failed) {
    std::string place;
    const std::string reason = cause_of(failed.why, place);
    std::vector<std::string>& names = cases[reason];
    if (names.empty()) reasons.push_back(reason);
    names.push_back(place.empty() ? failed.name : fmt::format("{} ({})", failed.name, place));
  }
  std::string text =
      fmt::format("\nWithout prediction: {} of {} measurements\n", report.failed.size(),
                  report.failed.size() + report.cases.size() + static_cast<std::size_t>(report.anchored));
  for (const std::string& why : reasons) {
    const std::vector<std::string>& all = cases[why];
    const std::size_t shown = std::min(all.size(), most_names);
    std::string names =
        fmt::format("{}", fmt::join(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    if (shown < all.size()) names += fmt::format(" and {} more (--json lists all)", all.size() - shown);
    text += fmt::format("  {}\n    {}\n", why, wrap(names, page_width() - 4, 4));
  }
  return text;
}

/// Whether training steps alone have the quantity.
bool is_of_step(const std::string& quantity) {
  return quantity != name(MeasuredQuantity::time) && quantity != name(MeasuredQuantity::bus_bandwidth);
}

/// Every case, as measured and as predicted, in the quantity's base unit.
std::string case_table(const AccuracyReport& report) {
  TextTable table("lllrrr", {"case", "group", "quantity", "measured", "predicted", "error"});
  for (const Comparison& c : report.cases) {
    table.add_row({c.name, c.group, c.quantity, plain_number(c.measured, 4), plain_number(c.predicted, 4),
                   signed_percent(c.error())});
  }
  return "\nAll cases, in seconds, bytes and per second\n\n" + table.text(page_indent);
}

/// Number of pairs predicted in the measured order, and a list of the others.
std::string pairs_section(const PairReport& pairs) {
  std::string text = "\nPairs ranked as measured\n" +
                     paragraph(fmt::format("Pairs differ only in {}, and by more than {:.0f} % as measured.",
                                           fmt::join(pairs.keys, ", "), measured_apart * 100.0)) +
                     "\n";
  if (pairs.n == 0) {
    return text + fmt::format("  No such pair; {} closer.\n", counted(pairs.close, "pair", "is", "are"));
  }
  TextTable table("lrrr", {"group", "pairs", "correct", "share"});
  const auto add = [&](const std::string& name, int n, int right) {
    table.add_row({name, std::to_string(n), std::to_string(right), percent_text(static_cast<double>(right) / n)});
  };
  for (const PairGroup& group : pairs.groups) add(group.name, group.n, group.right);
  if (pairs.groups.size() > 1) {
    table.add_rule();
    add("all", pairs.n, pairs.right);
  }
  text += table.text(page_indent);
  if (pairs.close == 1) text += "\n  Excluded: 1 closer pair\n";
  if (pairs.close > 1) text += fmt::format("\n  Excluded: {} closer pairs\n", pairs.close);
  if (pairs.wrong.empty()) return text;
  TextTable wrong("lllrr", {"better", "worse", "quantity", "measured", "predicted"});
  for (const WrongPair& pair : pairs.wrong) {
    wrong.add_row({pair.better, pair.worse, pair.quantity, fmt::format("{:.2f} x", pair.measured),
                   fmt::format("{:.2f} x", pair.predicted)});
  }
  return text + "\n  Ranked wrongly\n\n" + wrong.text(page_indent);
}

/// Rows for groups, or for subjects (subjects.hpp), which say what was fitted to them instead of their worst case.
class AccuracyTable {
 public:
  explicit AccuracyTable(bool subjects)
      : subjects_(subjects),
        table_(subjects ? TextTable("lrrrrl", {"measured", "n", "MAPE", "bias", "in 90 %", "fitted"})
                        : TextTable("lrrrrrr", {"group", "n", "MAPE", "median", "bias", "in 90 %", "worst"})) {}

  void add(const std::string& name, const ErrorStatistics& statistics, const char* fitted = "") {
    std::vector<std::string> cells = statistics_cells(name, statistics);
    if (subjects_ && statistics.n > 0) {
      cells.erase(cells.begin() + 3);
      cells.back() = fitted;
    }
    table_.add_row(std::move(cells));
  }
  void add_groups(const AccuracyReport& report) {
    if (!subjects_) {
      for (const GroupAccuracy& group : report.groups) add(group.name, group.statistics);
      return;
    }
    std::map<const MeasuredSubject*, std::vector<Comparison>> by_subject;
    for (const Comparison& c : report.cases) by_subject[subject_of(c.group, is_memory(c.quantity))].push_back(c);
    std::string_view section;
    for (const MeasuredSubject& subject : measured_subjects()) {
      if (section != subject.section) table_.add_row({subject.section});
      section = subject.section;
      add(fmt::format("  {}", subject.title), error_statistics(by_subject[&subject]),
          *subject.fitted == '\0' ? "blind" : subject.fitted);
    }
  }
  void add_totals(const AccuracyReport& report) {
    table_.add_rule();
    const bool both = report.times.n > 0 && report.memory.n > 0;
    add(both ? "all times" : "all", both ? report.times : report.overall);
    for (const bool steps : {true, false}) {
      const ErrorStatistics some = statistics_where(
          report, [&](const Comparison& c) { return !is_memory(c.quantity) && is_of_step(c.quantity) == steps; });
      if (some.n > 0 && some.n < report.times.n) add(steps ? "  training steps" : "  kernels, collectives", some);
    }
    if (both) add("all memory", report.memory);
  }
  [[nodiscard]] std::string text() const { return table_.text(page_indent); }

 private:
  static ErrorStatistics statistics_where(const AccuracyReport& report, const auto& belongs) {
    std::vector<Comparison> some;
    std::ranges::copy_if(report.cases, std::back_inserter(some), belongs);
    return error_statistics(some);
  }

  bool subjects_;
  TextTable table_;
};

}  // namespace

std::string to_text(const AccuracyReport& report, const AccuracyTextOptions& options) {
  AccuracyTable table(options.subjects);
  table.add_groups(report);
  table.add_totals(report);
  std::string text =
      "Predicted against measured\n\n" + table.text() + "\n" +
      paragraph(fmt::format("MAPE{}: absolute errors. bias: mean error; + is predicted too slow, or too much "
                            "memory. in 90 %: coverage of the 90 % interval.{}",
                            options.subjects ? "" : ", median",
                            options.subjects ? " fitted: constants that were fitted to these rows; blind: "
                                               "none. --groups lists all groups, --verbose all rows."
                                             : ""));
  if (report.anchored > 0) {
    text += anchor_section(report);
  }
  if (report.pairs) text += pairs_section(*report.pairs);
  text += failed_section(report);
  return options.verbose ? text + case_table(report) : text;
}

}  // namespace foretrain
