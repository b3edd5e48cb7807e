// A suite is a set of points that are measured one after the other. Each runs in a process of its own.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "validate/cuda/core/device.hpp"
#include "validate/cuda/core/nvml.hpp"
#include "validate/cuda/core/timing.hpp"
#include "validate/measure/journal.hpp"

namespace foretrain::gpu {

/// Who watches over a suite hears of each point when it begins and when it ends, so that a hang can be named.
class SuiteWatch {
 public:
  virtual ~SuiteWatch() = default;
  virtual void point_begins(const std::string& name) = 0;
  virtual void point_ends(const Record& record) = 0;
  /// The time is up: this point and what follows is left for the next run.
  virtual void out_of_time(const std::string& name) = 0;
};

struct SuiteOptions {
  bool quick = false;
  int device = 0;
  double deadline = 0.0;              ///< on now()'s clock: points that would begin after it are left for the next run
  std::set<std::string> passed_over;  ///< points that ended a process of this run, and are not tried again in it
  bool verify = true;                 ///< whether kernels are checked against the host before they are timed
  SuiteWatch* watch = nullptr;
};

/// What every suite is given. Points are kept as soon as they are measured.
class SuiteRun {
 public:
  SuiteRun(std::string_view suite, SuiteOptions options, Journal& journal, const Nvml& nvml);

  [[nodiscard]] bool quick() const { return options_.quick; }
  [[nodiscard]] int device() const { return options_.device; }
  /// Whether own kernels are checked against the host before they are timed. False only with `--unverified`, by which
  /// the program is tested on machines without a GPU, where a kernel computes nothing.
  [[nodiscard]] bool verify() const { return options_.verify; }
  /// How often a point is repeated: fewer and shorter with --quick.
  [[nodiscard]] StoppingRule rule() const;

  /// Measures a point that the journal does not hold yet. `measure` makes its buffers itself, so that each point fails
  /// alone: Fault::out_of_memory and Fault::unsupported become a skipped record, a wrong result or a library's refusal
  /// a failed one; a lost device goes up and ends the suite. The record's suite, device, values and state are set here;
  /// the state is what NVML said while `measure` ran: medians of its samples, and every reason for lower clocks.
  /// Throws Interrupted when the user ends the work; returns false where the time is up.
  bool point(Record record, const std::function<Sampled()>& measure);
  /// The same for a measurement that adds to its record what it chose (an algorithm, say), even where it then fails.
  bool point(Record record, const std::function<Sampled(Record&)>& measure);
  /// Notes why a point is not measured.
  void skip(Record record, const std::string& why);

 private:
  void keep(Record& record);

  std::string suite_;
  SuiteOptions options_;
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
/// Null where there is none of this name.
const Suite* find_suite(std::string_view name);

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
