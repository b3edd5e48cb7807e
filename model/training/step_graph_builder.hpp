// How step_graph() builds its graph: passes in step_graph.cpp, what is sent in step_graph_transfers.cpp.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/base/number.hpp"
#include "model/training/step_graph.hpp"

namespace foretrain {

/// Passes are added stage by stage, all lanes of a stage together: what their ranks do together waits for all of them.
class StepGraphBuilder {
 public:
  explicit StepGraphBuilder(const Step& step);
  StepGraph run() &&;

 private:
  struct Streams {
    ResourceId compute, gradients, to_next, to_previous;
    ResourceId gradient_kernels = -1;  ///< only where compression has kernels
  };
  /// A stretch of a pass: one block, or a block for each piece.
  struct Work {
    BlockId whole = -1;
    Seconds communication;  ///< in the whole
    std::vector<BlockId> cut;
    const std::vector<Piece>* pieces = nullptr;
  };
  struct ChunkBlocks {
    Work forward, backward;
    std::vector<Work> buckets;
    std::vector<Work> unit_forward, unit_backward;
    [[nodiscard]] const Work& pass(bool back) const { return back ? backward : forward; }
    [[nodiscard]] const Work& unit(int number, bool back) const {
      return (back ? unit_backward : unit_forward)[at_index(number)];
    }
  };
  /// One or several tasks for each lane of a stage.
  using PerLane = std::vector<TaskId>;
  using AfterPerLane = std::vector<std::vector<TaskId>>;

  TaskId add(BlockId block, ResourceId resource, std::vector<TaskId> after, int micro_batch = -1);
  BlockId fixed_block(const std::string& name, Seconds duration, Category category, RecipePointer recipe = nullptr);
  Work work_of(const char* name, const Segment& time, const std::vector<Piece>& pieces, RecipePointer recipe);
  BlockId transfer_block(int transfer, std::size_t part);
  ResourceId stream_of(const std::vector<int>& lanes, bool of_gradients);
  void add_streams();
  void add_blocks();

  /// The same transfer of all lanes of a stage: a task for each of its parts, after what their lanes wait for.
  PerLane add_transfer(int stage, int transfer, bool of_gradients, const AfterPerLane& after, int micro_batch = -1);
  template <typename WorkOf>
  PerLane add_work(int stage, const PipelinePass& pass, AfterPerLane after, const WorkOf& work_of);
  /// Adds a pass once its input is there; false when it has to wait for another stage to advance first.
  bool advance(int stage, const PipelinePass& pass);
  void wait_for_companions(int stage, AfterPerLane& after) const;
  PerLane add_sharded(int stage, const PipelinePass& pass, const AfterPerLane& after);
  PerLane add_synchronised_backward(int stage, const PipelinePass& pass, AfterPerLane after);
  void add_bucket(int stage, int chunk, std::size_t bucket, const PerLane& ready);
  void send(int stage, const PipelinePass& pass, const PerLane& done);
  TaskId meet(ResourceId resource, std::vector<TaskId> ends, int micro_batch);

  [[nodiscard]] std::size_t lanes_in(int stage) const { return at_index(first_lane(stage + 1) - first_lane(stage)); }
  [[nodiscard]] int first_lane(int stage) const { return first_lane_[at_index(stage)]; }
  [[nodiscard]] std::size_t lane_in(int stage, std::size_t i) const { return at_index(first_lane(stage)) + i; }
  [[nodiscard]] const Step::Chunk& chunk_of(int stage, int chunk) const {
    return step_.lanes[at_index(first_lane(stage))].chunks[at_index(chunk)];
  }
  [[nodiscard]] bool is_cut(int stage) const;
  /// Of a lane's passes, by chunk and micro-batch.
  [[nodiscard]] std::size_t at(int chunk, int micro) const {
    return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(step_.micro_batches) +
           static_cast<std::size_t>(micro);
  }

  const Step& step_;
  int stages_;
  int chunks_;
  TaskGraph::Builder builder_;
  std::vector<int> first_lane_;  ///< by stage, and one beyond
  std::vector<Streams> streams_;
  std::map<std::pair<std::vector<int>, bool>, ResourceId> shared_streams_;  ///< of several lanes; of gradients?
  std::vector<std::vector<ChunkBlocks>> blocks_;
  std::vector<std::vector<BlockId>> transfer_blocks_;          ///< by part
  std::vector<TaskId> previous_pass_;                          // by lane
  std::vector<std::vector<TaskId>> forward_;                   // by lane and pass: done; −1 = not yet
  std::vector<std::vector<TaskId>> input_, gradient_input_;    // by lane and pass: arrived from the neighbour
  std::vector<std::vector<TaskId>> gradient_tasks_;            // by lane
  std::vector<std::pair<TaskId, ResourceId>> last_gradients_;  // by lane
  std::vector<bool> gradients_begun_;                          // by stage
  StepGraph result_;
};

}  // namespace foretrain
