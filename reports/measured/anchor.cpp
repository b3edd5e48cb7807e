#include "reports/measured/anchor.hpp"

#include <fmt/format.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/base/units.hpp"
#include "model/job/training_outlook.hpp"
#include "reports/measured/measured.hpp"

namespace foretrain {

namespace {

constexpr double nine_of_ten_normal = 1.6449;         // standard deviations of a normal distribution
constexpr double quartiles_of_normal = 1.349;         // from the lower to the upper one, in standard deviations
constexpr double before_any_run = std::numbers::ln2;  // standard deviation of both logarithms

double square(double x) { return x * x; }

/// Standard deviation of ln(measured / predicted) that an interval states.
double deviation_of(const Result& result) {
  if (!(result.uncertainty_high > result.uncertainty_low)) return 0.0;
  return 0.5 * std::log(result.uncertainty_high / result.uncertainty_low) / nine_of_ten_normal;
}

double waiting_share(const Result& result) { return result.train()->breakdown.exposed_communication / result.time(); }

/// Everything that is waiting by `factor`; the step grows by as much, and with it what follows from it.
void scale_waiting(Result& result, double factor) {
  TrainResult& train = *result.train();
  const Seconds more = train.breakdown.exposed_communication * (factor - 1.0);
  const double longer = (train.step_time + more) / train.step_time;
  const Breakdown parts = train.breakdown;
  std::map<std::string, CommunicationTime> communication = train.communication;
  for (auto& [collective, time] : communication) {
    time.total *= factor;
    time.exposed *= factor;
  }
  result = stretched(std::move(result), longer);
  result.train()->breakdown = parts;
  result.train()->breakdown.exposed_communication += more;
  result.train()->communication = std::move(communication);
}

}  // namespace

Anchor anchor_of(const std::vector<AnchorRun>& runs) {
  // Of (ln computing, ln network).
  Eigen::Matrix2d precision = Eigen::Matrix2d::Identity() / square(before_any_run);
  Eigen::Vector2d weighed = Eigen::Vector2d::Zero();
  Anchor anchor;
  anchor.runs = static_cast<int>(runs.size());
  for (const AnchorRun& run : runs) {
    const Eigen::Vector2d shares(1.0 - run.waiting, run.waiting);
    const double weight = 1.0 / (square(run.spread) + square(anchor_scatter));
    precision += weight * shares * shares.transpose();
    weighed += weight * std::log(run.ratio) * shares;
    anchor.waits |= run.waiting > 0.0;
  }
  const Eigen::Matrix2d covariance = precision.inverse();
  const Eigen::Vector2d factors = covariance * weighed;
  anchor.computing = std::exp(factors[0]);
  anchor.network = std::exp(factors[1]);
  anchor.computing_variance = covariance(0, 0);
  anchor.network_variance = covariance(1, 1);
  for (const AnchorRun& run : runs) {
    const double explained = (1.0 - run.waiting) * factors[0] + run.waiting * factors[1];
    anchor.spread += square(std::log(run.ratio) - explained) / anchor.runs;
  }
  anchor.spread = std::sqrt(anchor.spread);
  return anchor;
}

std::string anchor_text(const Anchor& anchor) {
  if (anchor.runs == 1) return "1 step";
  return fmt::format("{} steps, ± {:.1f} % among each other,", anchor.runs, anchor.spread * 100.0);
}

AnchorRun anchor_run(const Case& row, const Result& result) {
  if (!result.train())
    throw UsageError(row.where.text() + ": only training steps are anchored by the steps of a model");
  AnchorRun run{time_factor(compare(row, result)), waiting_share(result), 0.0};
  if (const auto stated = row.replay.find("spread"); stated != row.replay.end()) {
    try {
      run.spread = parse_number(stated->second) / quartiles_of_normal;
    } catch (const UnitError& error) {
      throw ScenarioError(row.where, "replay.spread", error.got(), error.expected());
    }
  }
  return run;
}

Scenario computing_slower(Scenario scenario, double factor) {
  Gpu& gpu = scenario.cluster.node.gpu;
  if (gpu.processor) {
    Processor& processor = *gpu.processor;
    processor.dispatch *= factor;
    for (FlopsPerSecond* rate :
         {&processor.product_rate, &processor.convolution_rate, &processor.convolution_gradient_rate}) {
      *rate /= factor;
    }
    for (BytesPerSecond* rate :
         {&gpu.memory_bandwidth, &gpu.l2_bandwidth, &processor.reorder_rate, &processor.norm_rate,
          &processor.norm_gradient_rate, &processor.transcendental_rate, &processor.pooling_rate,
          &processor.random_rate, &processor.conversion_rate, &processor.fresh_rate, &processor.packing_rate}) {
      *rate /= factor;
    }
    return scenario;
  }
  scenario.calibration.step.kernel_stretch *= factor;
  HostConstants& host = scenario.calibration.host;
  for (TrackedNumber* time : {&host.dispatch_us, &host.compiled_dispatch_us, &host.graph_launch_us, &host.step_us}) {
    *time *= factor;
  }
  return scenario;
}

Result anchored(Result result, const Anchor& anchor, const std::string& source) {
  if (!result.train()) throw UsageError(result.scenario + ": no training step, which alone steps of a model anchor");
  const double stated = deviation_of(result);
  scale_waiting(result, anchor.network);
  const double waiting = waiting_share(result);
  const auto part = [&](double share, double variance) { return square(share) * std::min(variance, square(stated)); };
  const double deviation = std::sqrt(part(1.0 - waiting, anchor.computing_variance) +
                                     part(waiting, anchor.network_variance) + square(anchor_scatter));
  result.set_uncertainty(std::expm1(nine_of_ten_normal * std::min(stated, deviation)));
  if (result.train()->bill) set_length_interval(result);
  const auto note = [&](const char* name, double factor, double variance) {
    const std::string known =
        fmt::format("± {:.1f} % (1 σ) from {}; the interval adds ± {:.1f} %, as runs of one model differ",
                    std::sqrt(variance) * 100.0, source, anchor_scatter * 100.0);
    result.provenance.push_back({name, factor, "", ConstantKind::measurement, known});
  };
  note("anchor.computing", anchor.computing, anchor.computing_variance);
  if (anchor.waits) note("anchor.network", anchor.network, anchor.network_variance);
  return result;
}

}  // namespace foretrain
