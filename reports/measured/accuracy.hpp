// Predictions beside measurements: the error of every case, and what the errors of a group have in common.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/result.hpp"
#include "reports/figure/figure.hpp"
#include "reports/measured/anchor.hpp"
#include "reports/result/text.hpp"

namespace foretrain {

/// Whether the quantity is so much a second; of times and memory the lower is better.
bool is_rate(const std::string& quantity);
bool is_memory(const std::string& quantity);

/// One measured quantity of one case. Both numbers are in the quantity's base unit (s, 1/s, byte, byte/s).
struct Comparison {
  std::string name;  ///< of the case
  std::string group;
  std::string quantity;  ///< "step_time", "samples_per_second", … as in the table's `measured.` columns
  double measured = 0.0;
  double predicted = 0.0;
  std::optional<bool> covered = std::nullopt;  ///< whether the prediction's interval holds the measured time
  bool anchored = false;                       ///< predicted relative to measured runs of its model
  std::vector<UncertaintyCause> causes = {};   ///< of the prediction's interval

  /// Of times, and of rates as the times that they stand for, so that both ways to be wrong weigh the same: predicted
  /// time / measured time − 1, positive where a step is predicted too slow. Of memory predicted / measured − 1.
  [[nodiscard]] double error() const { return (is_rate(quantity) ? measured / predicted : predicted / measured) - 1.0; }
};

struct FailedCase {
  std::string name;
  std::string why;
};

/// Statistics of errors as fractions, not percent. All zero when n is zero.
struct ErrorStatistics {
  int n = 0;
  double mape = 0.0;                              ///< mean of the absolute errors
  double median_error = 0.0;                      ///< median of the absolute errors
  double bias = 0.0;                              ///< mean of the signed errors
  double worst = 0.0;                             ///< the signed error farthest from zero
  std::string worst_case;                         ///< its case
  std::optional<double> coverage = std::nullopt;  ///< share of those with an interval whose interval holds them
};

/// Memory is a group of its own, "NAME memory", where the table's group NAME has times as well.
struct GroupAccuracy {
  std::string name;
  ErrorStatistics statistics;
  double factor = 1.0;  ///< factor of anchoring on the group's predictions
  int anchors = 0;      ///< comparisons that the factor comes from
};

/// Two cases in the wrong order.
struct WrongPair {
  std::string better, worse;  ///< names of the cases, as measured
  std::string group;
  std::string quantity;
  double measured = 1.0;   ///< ratio of the better one to the other
  double predicted = 1.0;  ///< the same as predicted: not above one
};

struct PairGroup {
  std::string name;  ///< of both cases' group, or of the two groups
  int n = 0;
  int right = 0;
};

/// Whether predictions order pairs of cases as measurements do (compare_pairs).
struct PairReport {
  std::vector<std::string> keys;  ///< in which the cases of a pair differ
  int n = 0;
  int right = 0;
  int close = 0;  ///< pairs that are too close together
  std::vector<PairGroup> groups;
  std::vector<WrongPair> wrong;

  [[nodiscard]] double share() const { return n > 0 ? static_cast<double>(right) / n : 0.0; }
};

struct AccuracyReport {
  std::vector<GroupAccuracy> groups;       ///< in order of appearance
  ErrorStatistics overall, times, memory;  ///< of all cases; of those with a time or rate; of memory
  std::vector<Comparison> cases;           ///< those that the statistics count, predictions after anchoring
  std::vector<FailedCase> failed;
  int anchored = 0;                       ///< comparisons that were spent on factors
  std::map<std::string, Anchor> anchors;  ///< by the name that cases have in the column `anchor`
  std::optional<PairReport> pairs;        ///< if requested; before anchoring
};

ErrorStatistics error_statistics(const std::vector<Comparison>& comparisons);

/// Groups the comparisons. With `anchor` > 0, the first `anchor` comparisons of each group fix one factor, the median
/// of their measured over predicted times. It stretches the group's other predictions, and the comparisons it came from
/// leave the errors. Memory is compared as it is: an efficiency factor says nothing about it. What is anchored by runs
/// of its model has no part in this.
AccuracyReport accuracy_report(const std::vector<Comparison>& comparisons, std::vector<FailedCase> failed, int anchor);

/// Predicted against measured, a panel for each dimension: the solid diagonal is a perfect prediction, the dashed ones
/// ±10 %. The four groups with the largest mean error are shown apart.
Figure to_figure(const AccuracyReport& report);

struct AccuracyTextOptions {
  bool verbose = false;   ///< every case
  bool subjects = false;  ///< of the shipped tables: a row for each subject (subjects.hpp) instead of each group
};
/// The accuracy of every group as a table, and every failed case.
std::string to_text(const AccuracyReport& report, const AccuracyTextOptions& options = {});

/// `validate --json`, and the errors of a group as an object of it.
std::string to_json(const AccuracyReport& report);
nlohmann::ordered_json statistics_json(const ErrorStatistics& s);

struct Case;

/// A measured and predicted quantity of a case that may be paired with others of its table.
struct Rival {
  const Case* row = nullptr;
  Comparison comparison;
};

/// Pairs up rivals of one table and one quantity whose keys are all equal but the chosen ones, which must all differ. A
/// chosen key stands for everything below it ("plan.sync": algorithm, placement, …). Of several measurements of one
/// scenario the best counts: whatever held the others up was not the scenario. Pairs whose measurements differ by no
/// more than `measured_apart` are only counted. Throws UsageError for a key that no case sets.
PairReport compare_pairs(const std::vector<Rival>& rivals, const std::vector<std::string>& keys);

}  // namespace foretrain
