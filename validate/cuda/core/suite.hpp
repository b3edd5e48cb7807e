// A suite is a set of points that are measured one after the other. Each runs in a process of its own.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "validate/cuda/core/device.hpp"
#include "validate/cuda/core/nvml.hpp"
#include "validate/cuda/core/short_text.hpp"
#include "validate/cuda/core/state_sampler.hpp"
#include "validate/cuda/core/timing.hpp"
#include "validate/measure/journal.hpp"

namespace foretrain::gpu {

struct Suite;
class Meeting;

/// One suite, measured into a folder.
struct SuiteTask {
  const Suite* suite = nullptr;
  std::string folder;
  bool quick = false;
  std::vector<std::string> passed_over =
      {};                            ///< points that ended a process of this run, and are not tried again in it
  const Meeting* meeting = nullptr;  ///< of the processes of this machine that measure the suite together

  /// The suite's file in the folder.
  [[nodiscard]] std::string journal_path() const;
};

/// Progress that the process of a suite reports to its watcher, in memory that both share.
struct SuiteProgress {
  std::atomic<unsigned> signs;       ///< of life: counts up when a point begins or ends
  ShortText at_work;                 ///< the point that it may end with: begun, or failed; "" for none
  ShortText fatal;                   ///< why it gave up
  bool late;                         ///< the time was up: the next run measures the rest
  bool throttled;                    ///< the device lowered its clocks by heat or for want of power
  unsigned long long memory_errors;  ///< uncorrectable ones while it ran
};

/// Context of every suite. Points are written as soon as they are measured.
class SuiteRun {
 public:
  /// Points that would begin after the suite's budget are left for the next run.
  SuiteRun(const SuiteTask& task, Journal& journal, const Nvml& nvml, SuiteProgress& progress);

  [[nodiscard]] bool quick() const { return task_.quick; }
  [[nodiscard]] const Meeting* meeting() const { return task_.meeting; }
  /// Repetitions of a point: fewer and shorter with --quick.
  [[nodiscard]] StoppingRule rule() const;

  /// Measures a point that the journal does not hold yet. `measure` makes its buffers itself, so that each point fails
  /// alone: Fault::out_of_memory and Fault::unsupported become a skipped record, a wrong result or a library's refusal
  /// a failed one. A lost device goes up and ends the suite. The record's suite, device, values and state are set here;
  /// the state is what NVML said while `measure` ran, or from begin_timing() on. What was measured while clocks were
  /// lowered by heat is measured again, after a pause.
  /// Throws Interrupted when the user ends the work; returns false where the time is up.
  bool point(Record record, const std::function<Sampled()>& measure) {
    return point(std::move(record), [&measure](Record&) { return measure(); });
  }
  /// The same for a measurement that adds to its record what it chose (an algorithm, say), even where it then fails.
  bool point(Record record, const std::function<Sampled(Record&)>& measure);
  /// From here on `measure` is timing: what the device is asked before (buffers, plans) is not the state of the point.
  void begin_timing() { sampler_.emplace(nvml_, bus_id_); }
  /// Notes why a point is not measured.
  void skip(Record record, const std::string& why);

 private:
  void keep(Record& record);
  void measure_cool(Record& record, const std::function<Sampled(Record&)>& measure);

  const SuiteTask& task_;
  double deadline_;  ///< on now()'s clock
  Journal& journal_;
  const Nvml& nvml_;
  SuiteProgress& progress_;
  std::string bus_id_;
  std::optional<StateSampler> sampler_;
  int pauses_ = 0;  ///< that were made to let the device cool
};

struct Suite {
  std::string_view name;
  std::string_view description;
  double budget_s, quick_budget_s;  ///< after which no further point is begun
  bool needs_several_gpus;
  void (*run)(SuiteRun&);
};

const std::vector<Suite>& suites();

#define SUITE(name, ...) void run_##name(SuiteRun& run);
#include "validate/cuda/core/suites.def"

/// Runs processes of rank 1 and above while rank 0 runs the suite collective: they take part, and write
/// nothing. `meeting` is null where a launcher started them. Returns when rank 0 says that this was all. Throws
/// GpuError and WorldError.
void follow_collective(const Meeting* meeting, int rank);

}  // namespace foretrain::gpu
