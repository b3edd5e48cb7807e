// Builds the graph of step_graph(): passes in step_graph.cpp, transfers in step_graph_transfers.cpp, weights that
// are gathered in step_graph_weights.cpp.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/base/number.hpp"
#include "model/training/graph/step_blocks.hpp"
#include "model/training/graph/step_graph.hpp"

namespace foretrain {

/// A step's tasks, for all steps of its shape.
struct StepTasks {
  StepGraph graph;              ///< its blocks stand for those of any such step
  std::vector<BlockId> blocks;  ///< by their numbers in the graph: passes, then the others in the order of their use
};

/// Passes are added stage by stage, all rank classes of a stage together: what their ranks do together waits for all of
/// them.
class StepGraphBuilder {
 public:
  StepGraphBuilder(const Step& step, const StepBlocks& blocks);
  StepTasks run() &&;

 private:
  struct Streams {
    ResourceId compute, gradients, to_next, to_previous;
    ResourceId gradient_kernels = -1;  ///< only where compression has kernels
    ResourceId host = -1;              ///< only where passes are cut and wait for their dispatch
  };
  /// One or several tasks for each rank class of a stage.
  using PerClass = std::vector<TaskId>;
  using AfterPerClass = std::vector<std::vector<TaskId>>;
  /// A chunk's gradients are ready on a stage, or on each of two that hold the same chunk.
  struct ReadyOn {
    int stage = 0, chunk = 0;
    PerClass tasks;
  };
  /// Traffic that a transfer's ranks serialise: collectives inside layers; of gradients and weights; of gradients
  /// among ranks that hold the same shard of them.
  enum class Traffic { inside_layers, gradients, copies };

  TaskId add(BlockId block, ResourceId resource, std::vector<TaskId> after, int micro_batch = -1);
  BlockId number_of(BlockId block);
  ResourceId stream_of(const std::vector<int>& rank_classes, Traffic traffic);
  [[nodiscard]] std::string stream_name(std::size_t rank_class) const;
  void add_streams();

  /// The same transfer of all rank classes of a stage, or of more rank classes from its first one on. A task for each
  /// of its parts, after what their rank classes wait for.
  PerClass add_transfer(int stage, int transfer, Traffic traffic, const AfterPerClass& after, int micro_batch = -1);
  using Work = StepBlocks::Work;
  using WorkOf = std::function<const Work&(const std::vector<StepBlocks::Chunk>& of_class)>;
  PerClass add_work(int stage, const PipelinePass& pass, AfterPerClass after, const WorkOf& work_of);
  PerClass add_slices(int stage, const PipelinePass& pass, AfterPerClass after, const WorkOf& work_of);
  TaskId add_dispatch(std::size_t rank_class, BlockId block, const std::vector<TaskId>& after, int micro_batch);
  /// Adds a pass, or two that run together, once their input is there; false when they have to wait for another stage
  /// to advance first.
  bool advance(int stage, std::span<const PipelinePass> passes);
  bool add_inputs(int stage, const PipelinePass& pass, AfterPerClass& after) const;
  [[nodiscard]] bool is_last(int stage, const PipelinePass& pass) const {
    return pass.makes_weight_gradients() &&
           pass.micro_batch == last_gradients_of_[at_index(stage)][at_index(pass.chunk)].micro_batch;
  }
  void wait_for_companions(int stage, AfterPerClass& after) const;
  void gather_weights(int stage, int chunk, const AfterPerClass& after);
  void gather_before_passes(const std::vector<std::vector<PipelinePass>>& orders);
  PerClass add_first_forward(int stage, const PipelinePass& pass, AfterPerClass after);
  void wait_for_messages(int stage, AfterPerClass& after);
  void wait_for_messages(int stage, PerClass& last);
  PerClass add_sharded(int stage, const PipelinePass& pass, const AfterPerClass& after);
  PerClass add_synchronised_backward(int stage, const PipelinePass& pass, AfterPerClass after);
  void add_bucket(int stage, int chunk, std::size_t bucket, const PerClass& ready);
  void synchronise(std::size_t bucket, const std::vector<ReadyOn>& ready);
  void send(int stage, const PipelinePass& pass, const PerClass& done);
  TaskId add_checkpoint();
  void note_arrivals();
  void note_tasks();
  TaskId meet(ResourceId resource, std::vector<TaskId> ends, int micro_batch);

  [[nodiscard]] std::size_t classes_in(int stage) const {
    return at_index(first_class(stage + 1) - first_class(stage));
  }
  [[nodiscard]] int first_class(int stage) const { return first_class_[at_index(stage)]; }
  [[nodiscard]] std::size_t class_in(int stage, std::size_t i) const { return at_index(first_class(stage)) + i; }
  [[nodiscard]] const Step::Chunk& chunk_of(int stage, int chunk) const {
    return step_.rank_classes[at_index(first_class(stage))].chunks[at_index(chunk)];
  }
  [[nodiscard]] bool is_cut(int stage) const;
  [[nodiscard]] bool awaits_weights(int stage) const {
    return std::ranges::find(weights_awaited_[at_index(stage)], true) != weights_awaited_[at_index(stage)].end();
  }
  /// Index of a pass among its rank class's, by chunk and micro-batch.
  [[nodiscard]] std::size_t at(int chunk, int micro) const {
    return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(step_.micro_batches) +
           static_cast<std::size_t>(micro);
  }

  const Step& step_;
  const StepBlocks& blocks_;
  int stages_;
  ChunkPlacement placement_;
  TaskGraph::Builder builder_;
  std::vector<int> first_class_;  ///< by stage, and one beyond
  std::vector<Streams> streams_;
  std::map<std::pair<std::vector<int>, Traffic>, ResourceId> shared_streams_;  ///< several rank classes have one
  std::vector<BlockId> numbers_;                             // in the graph, by number in blocks_; −1 = not used yet
  std::vector<BlockId> used_;                                // the other way round
  std::vector<TaskId> previous_pass_;                        // by rank class
  std::vector<std::vector<TaskId>> forward_;                 // by rank class and pass: done; −1 = not yet
  std::vector<std::vector<TaskId>> input_, gradient_input_;  // by rank class and pass: arrived from the neighbour
  std::vector<std::vector<TaskId>> awaited_;                 // by rank class: blocking messages of the last pass
  std::vector<std::vector<TaskId>> gradient_tasks_;          // by rank class
  std::vector<std::pair<TaskId, ResourceId>> last_gradients_;  // by rank class
  std::vector<bool> gradients_begun_;                          // by stage
  std::vector<std::vector<PipelinePass>> last_gradients_of_;   // by stage and chunk
  std::vector<std::vector<bool>> weights_awaited_;             // by stage and chunk: by a first forward pass to come
  std::vector<std::vector<PerClass>> gathered_;                // by chunk of the model, then gather: by rank class
  /// By chunk of the model and bucket: ready on one of the stages that hold it.
  std::map<std::pair<int, std::size_t>, ReadyOn> ready_elsewhere_;
  StepGraph result_;
};

}  // namespace foretrain
