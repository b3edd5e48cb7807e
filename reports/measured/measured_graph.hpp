// Task graphs that ran on GPUs, beside their predictions: what foretrain-gpu replay wrote.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/figure/plot.hpp"
#include "reports/measured/accuracy.hpp"
#include "validate/replay/graph.hpp"

namespace foretrain {

struct MeasuredTask {
  std::string name, category, resource;
  std::size_t block_number = 0;  ///< in the graph that was run
  Seconds predicted_start, predicted_end;
  std::optional<Seconds> start, end;  ///< nothing where it was a part of a CUDA graph, or took no time
};

/// An operator of a block that has several.
struct MeasuredWork {
  std::string block, name;
  Seconds predicted, measured;
  std::size_t block_number = 0, work_number = 0;  ///< in the graph that was run
  int tasks = 1;                                  ///< of this block
};

struct MeasuredGraph {
  std::string name, scenario, hardware, fidelity;
  std::string machine;   ///< its GPU, and the driver
  std::string identity;  ///< of the graph that was run (replay::identity_of)
  Seconds predicted;
  std::vector<double> steps;  ///< seconds, all of them; none where it could not be run
  Bytes memory;               ///< taken on the first GPU
  Seconds host;               ///< that the host thread took for a step
  std::vector<MeasuredTask> tasks;
  std::vector<MeasuredWork> work;
  std::vector<std::string> notes;  ///< why it could not be run, or what was measured otherwise

  [[nodiscard]] Seconds measured() const;
  /// Distance of the quartiles over the median.
  [[nodiscard]] double spread() const;
  [[nodiscard]] double error() const { return predicted / measured() - 1.0; }
};

/// Tasks of one name on one kind of place, together.
struct TaskError {
  std::string name;
  int count = 0;
  Seconds predicted, measured;  ///< of all of them
  [[nodiscard]] Seconds off() const { return predicted - measured; }
};

/// A file of foretrain-gpu replay. Throws ScenarioError naming the file when it is none.
MeasuredGraph read_measured_graph(const std::string& path);
/// Whether a text is such a file.
bool is_measured_graph(std::string_view text);
/// The files replay-*.json of a folder, in the order of their names. Throws UsageError when there is none.
std::vector<MeasuredGraph> read_measured_graphs(const std::string& folder);

/// Takes the predictions of this graph in place of those that it was exported with, if it is the same graph; else a
/// note says that it has changed.
void predict_again(MeasuredGraph& measured, const replay::Graph& graph);

/// At most `count` tasks with the largest errors in time; operators instead of blocks of several.
std::vector<TaskError> worst_tasks(const MeasuredGraph& graph, std::size_t count);

/// A table: predicted, measured, spread, error; then the worst-predicted tasks of each, and what could not be run.
std::string measured_graphs_text(const std::vector<MeasuredGraph>& graphs);

/// Predicted and measured rows of each place, one above the other.
TimelineFigure measured_timeline(const MeasuredGraph& graph);

}  // namespace foretrain
