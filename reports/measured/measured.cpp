#include "reports/measured/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/base/statistics.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

void scale(TrainResult& train, double factor) {
  train.step_time *= factor;
  train.samples_per_second /= factor;
  train.tokens_per_second /= factor;
  train.tokens_per_second_per_gpu /= factor;
  train.model_flops_per_second_per_gpu /= factor;
  train.mfu /= factor;
  for (const BreakdownPart& part : breakdown_parts) train.breakdown.*part.time *= factor;
  for (auto& [collective, time] : train.communication) {
    time.total *= factor;
    time.exposed *= factor;
  }
  if (train.time_to_train) *train.time_to_train *= factor;
  if (train.cost_usd) *train.cost_usd *= factor;
  if (!train.bill) return;
  TrainResult::Bill& bill = *train.bill;
  bill.shortest *= factor;
  bill.longest *= factor;
  for (std::optional<double>* part : {&bill.usd_low, &bill.usd_high, &bill.kwh, &bill.kg_co2}) {
    if (*part) **part *= factor;
  }
}

void scale(CollectiveResult& collective, double factor) {
  collective.time *= factor;
  collective.algorithm_bandwidth /= factor;
  collective.bus_bandwidth /= factor;
}

void scale(OperatorResult& op, double factor) { op.time *= factor; }

void scale(TasksResult& tasks, double factor) {
  tasks.time *= factor;
  for (auto& [id, finish] : tasks.finish) finish *= factor;
}

/// Whether the interval covers a time or a rate; it does not concern memory.
std::optional<bool> covered(const Result& result, const Comparison& c) {
  if (c.quantity == name(MeasuredQuantity::memory_per_gpu)) return std::nullopt;
  if (!(result.uncertainty_high > result.uncertainty_low)) return std::nullopt;
  if (c.quantity == name(MeasuredQuantity::time_to_train)) {
    if (!result.train()->bill) return std::nullopt;
    const TrainResult::Bill& bill = *result.train()->bill;
    return c.measured >= bill.shortest.value() && c.measured <= bill.longest.value();
  }
  const Seconds measured = result.time() * (is_rate(c.quantity) ? c.predicted / c.measured : c.measured / c.predicted);
  return measured >= result.uncertainty_low && measured <= result.uncertainty_high;
}

}  // namespace

bool is_rate(const std::string& quantity) {
  using enum MeasuredQuantity;
  constexpr std::array rates = {samples_per_second, tokens_per_second, tokens_per_second_per_gpu, bus_bandwidth};
  return std::ranges::any_of(rates, [&](MeasuredQuantity rate) { return quantity == name(rate); });
}

std::optional<double> predicted_value(const Result& result, MeasuredQuantity quantity) {
  const TrainResult* train = result.train();
  if (quantity == MeasuredQuantity::time && train == nullptr) return result.time().value();
  if (quantity == MeasuredQuantity::bus_bandwidth && result.collective()) {
    return result.collective()->bus_bandwidth.value();
  }
  if (train == nullptr) return std::nullopt;
  switch (quantity) {
    case MeasuredQuantity::step_time:
      return train->step_time.value();
    case MeasuredQuantity::samples_per_second:
      return train->samples_per_second;
    case MeasuredQuantity::tokens_per_second:
      return train->tokens_per_second;
    case MeasuredQuantity::tokens_per_second_per_gpu:
      return train->tokens_per_second_per_gpu;
    case MeasuredQuantity::memory_per_gpu:
      return (train->memory.logged > Bytes(0.0) ? train->memory.logged : train->memory.total()).value();
    case MeasuredQuantity::time_to_train:
      if (train->time_to_train) return train->time_to_train->value();
      return std::nullopt;
    case MeasuredQuantity::time:
    case MeasuredQuantity::bus_bandwidth:
      break;
  }
  return std::nullopt;
}

std::vector<Comparison> compare(const Case& row, const Result& result) {
  if (row.measured.empty()) throw UsageError(row.where.text() + ": the case has no measured.* value to compare with");
  std::vector<Comparison> comparisons;
  for (const Measurement& measurement : row.measured) {
    const std::string quantity(name(measurement.quantity));
    const std::optional<double> predicted = predicted_value(result, measurement.quantity);
    if (!predicted) {
      const bool no_length = measurement.quantity == MeasuredQuantity::time_to_train && result.train();
      throw UsageError(fmt::format("{}: measured.{}: {}", measurement.where.text(), quantity,
                                   no_length ? "the training has no length; state workload.train.samples"
                                             : "this kind of workload has no such prediction"));
    }
    Comparison& comparison =
        comparisons.emplace_back(Comparison{row.name, row.group, quantity, measurement.value, *predicted});
    comparison.covered = covered(result, comparison);
    if (comparison.covered) comparison.causes = result.uncertainty_causes;
  }
  return comparisons;
}

double time_factor(const std::vector<Comparison>& comparisons) {
  std::vector<double> factors;
  for (const Comparison& c : comparisons) {
    if (c.quantity == name(MeasuredQuantity::memory_per_gpu)) continue;
    factors.push_back(is_rate(c.quantity) ? c.predicted / c.measured : c.measured / c.predicted);
  }
  if (factors.empty()) throw UsageError("the anchoring runs measure no time and no throughput");
  return median(std::move(factors));
}

Result stretched(Result result, double factor) {
  std::visit([factor](auto& work) { scale(work, factor); }, result.work);
  result.uncertainty_low *= factor;
  result.uncertainty_high *= factor;
  for (TimelineEntry& entry : result.timeline) {
    entry.start *= factor;
    entry.duration *= factor;
  }
  return result;
}

Result anchored(Result result, double factor, const std::string& source) {
  result = stretched(std::move(result), factor);
  result.provenance.push_back({"anchor.factor", factor, "", ConstantKind::measurement, source});
  return result;
}

}  // namespace foretrain
