// A profiler's traces of a step, one or several ranks, beside its prediction.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"
#include "reports/import/kineto_trace.hpp"

namespace foretrain {

struct RankTrace {
  std::string file;
  KinetoSummary summary;
};

/// Time of a step by what the GPU does; of collectives and copies what no kernel hides. All rows add up to the step.
struct TraceRow {
  std::string name;
  Seconds expected, measured;
  double expected_count = 0.0, measured_count = 0.0;  ///< kernels; 0 where they are not counted
  [[nodiscard]] Seconds difference() const { return measured - expected; }
};

/// Collectives of one kind, size and group size.
struct TraceCollective {
  KernelKind kind = KernelKind::communication;
  Bytes size;
  int ranks = 0;
  double count = 0.0;  ///< of a rank, in a step
  Seconds time = {};   ///< median, without waiting where several ranks are traced
  std::optional<BytesPerSecond> reached = {}, expected = {};  ///< as nccl-tests' bus bandwidth
};

struct TraceRank {
  std::string file;
  Seconds waits;      ///< of a step, in collectives, for ranks that come later
  double last = 0.0;  ///< share of the collectives to which it comes last
};

struct TraceDiagnosis {
  int steps = 1;
  Seconds expected, measured;
  /// Of the measured step, on the rank that others wait for. Copies count as communication, idle time for dependencies
  /// or unknown reasons as the bubble.
  Breakdown parts = {};
  std::optional<Seconds> lag = {};                ///< that rank computes longer than the median rank; of several
  std::optional<Seconds> traced = {};             ///< the traces' own step, where they say it
  std::optional<Seconds> communication = {};      ///< of a step, without waiting; where several ranks say so
  std::optional<Bytes> bucket = {};               ///< largest reduction among the data-parallel ranks alone
  double explained = 1.0;                         ///< share of the difference that has a category
  std::vector<TraceRow> rows = {};                ///< greatest difference first
  std::vector<TraceCollective> collectives = {};  ///< longest first
  std::vector<TraceRank> ranks = {};              ///< the one that others wait for first; empty for one trace
};

/// The mean of the ranks beside the prediction. `measured`: the step's time without a profiler, where it is known: idle
/// time is scaled to it. Throws UsageError where no trace says how long a step takes or it takes no time, and as
/// predict().
TraceDiagnosis diagnose_traces(const Scenario& scenario, std::span<const RankTrace> traces,
                               std::optional<Seconds> measured, Fidelity fidelity);

/// "GEMM", "all-reduce".
std::string label_of(KernelKind kind);

/// What bounds the measured step: "Host-bound: …".
std::string verdict_of(const TraceDiagnosis& diagnosis);
std::string to_text(const TraceDiagnosis& diagnosis);
nlohmann::ordered_json to_json(const TraceDiagnosis& diagnosis);

}  // namespace foretrain
