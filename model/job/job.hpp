// A scenario's work as a task graph, and the way from the times of its tasks to a result. Every executor starts and
// ends here, so that answers differ in those times alone.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/graph/execution.hpp"
#include "model/graph/recipe.hpp"
#include "model/hardware/topology.hpp"
#include "model/result.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Runs a graph: uncontended, simulated, or for real.
using Executor = std::function<Execution(const TaskGraph&)>;

class Job {
 public:
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] virtual const TaskGraph& graph() const = 0;
  /// On which the graph's flows move.
  [[nodiscard]] virtual const Topology& topology() const { return topology_; }
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  /// A step takes so many times as long while a checkpoint is written over the cards that training uses.
  virtual void set_writing(double /*longer*/) {}
  /// The result of an execution of graph(). `execute` runs the parts that depend on its times: the input pipeline of a
  /// training step, which waits for the step.
  [[nodiscard]] virtual Result read(const Execution& execution, const Executor& execute) const = 0;

 protected:
  Job(const Scenario& scenario, Fidelity fidelity)
      : scenario_(scenario), fidelity_(fidelity), topology_(Topology::of(scenario.cluster)) {}
  /// A result with what does not depend on times: name, fidelity, warnings.
  [[nodiscard]] Result named_result() const;

  const Scenario& scenario_;
  Fidelity fidelity_;
  Topology topology_;
};

/// Builds and costs the scenario's work, which must outlive the job, for executors of one fidelity. With Recipes::kept
/// blocks know what they do, for replays: gradients that go through parameter servers are then one exchange per bucket.
/// Throws ScenarioError or UsageError.
std::unique_ptr<Job> make_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes = Recipes::none,
                              InsideLayers inside = InsideLayers::merged);

enum class Detail {
  numbers,  ///< the numbers, with the uncertainty that published tables give: for those who ask many times
  whole,    ///< also what was asked, what the numbers depend on, and its uncertainty by the calibration
  timeline  ///< also what ran when (Result::timeline); a single operator has no timeline
};

/// Result of a run of the job; finish() adds the parts that do not depend on the run.
Result result_of(const Job& job, const Executor& execute, Detail detail = Detail::numbers);

/// Adds what follows from a scenario and the numbers of its result: uncertainty, the bill, whether it fits and what
/// would make it fit, framework settings, and the constants that were read. The caller's ReadScope must begin before
/// the job.
void finish(const Scenario& scenario, Detail detail, Result& result);

/// The scenario's resolved settings in words, with those marked that are defaults.
std::vector<Setting> settings_of(const Scenario& scenario);

/// The scenario's constants and figures that concern its work, without numbers that were not read since the innermost
/// Reading began. What does not note its reads counts as read.
std::vector<Constant> provenance_of(const Scenario& scenario);

/// The numbers of the graph over an uncontended network.
Result estimate(const Scenario& scenario);
/// Their time, sooner where a training step's graph alone says it.
Seconds estimated_time(const Scenario& scenario);

}  // namespace foretrain
