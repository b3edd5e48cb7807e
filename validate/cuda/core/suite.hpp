// A suite is a set of points that are measured one after the other. Each runs in a process of its own.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "validate/cuda/core/device.hpp"
#include "validate/cuda/core/nvml.hpp"
#include "validate/cuda/core/timing.hpp"
#include "validate/measure/journal.hpp"

namespace foretrain::gpu {

/// What every suite is given. Points are kept as soon as they are measured.
class SuiteRun {
 public:
  /// `deadline` on now()'s clock: points that would begin after it are left for the next run.
  SuiteRun(std::string_view suite, bool quick, int device, double deadline, Journal& journal, const Nvml& nvml);

  [[nodiscard]] bool quick() const { return quick_; }
  [[nodiscard]] int device() const { return device_; }
  /// How often a point is repeated: fewer and shorter with --quick.
  [[nodiscard]] StoppingRule rule() const;

  /// Measures a point that the journal does not hold yet. `measure` makes its buffers itself, so that each point fails
  /// alone: Fault::out_of_memory and Fault::unsupported become a skipped record, a wrong result or a library's refusal
  /// a failed one; a lost device goes up and ends the suite. The record's suite, device, values and state are set here.
  /// Throws Interrupted when the user ends the work; returns false where the time is up.
  bool point(Record record, const std::function<Sampled()>& measure);
  /// The same for a measurement that adds to its record what it chose (an algorithm, say), even where it then fails.
  bool point(Record record, const std::function<Sampled(Record&)>& measure);
  /// Notes why a point is not measured.
  void skip(Record record, const std::string& why);

 private:
  std::string suite_;
  bool quick_;
  int device_;
  double deadline_;
  Journal& journal_;
  const Nvml& nvml_;
  std::string bus_id_;
};

struct Suite {
  std::string_view name;
  std::string_view description;
  double budget_s, quick_budget_s;  ///< after which no further point is begun
  bool needs_several_gpus;
  void (*run)(SuiteRun&);
};

/// In the order in which they run.
const std::vector<Suite>& suites();

// One function per suite, in files of their own (suites/NAME.cpp).
void run_launch(SuiteRun& run);
void run_memory(SuiteRun& run);
void run_copy(SuiteRun& run);
void run_gemm(SuiteRun& run);
void run_convolution(SuiteRun& run);
void run_attention(SuiteRun& run);
void run_streaming(SuiteRun& run);
void run_peer(SuiteRun& run);
void run_collective(SuiteRun& run);
void run_overlap(SuiteRun& run);

}  // namespace foretrain::gpu
