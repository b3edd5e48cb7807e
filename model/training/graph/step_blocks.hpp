// The blocks of a step's graph: what its tasks refer to, each once. Which blocks there are, and which tasks, depends on
// the step's shape alone; how long they take does not.
#pragma once

#include <cstdint>
#include <vector>

#include "model/training/graph/pass_slices.hpp"

namespace foretrain {

struct StepBlocks {
  /// A pass: one block, or a block for each slice.
  struct Work {
    BlockId whole = -1;
    std::vector<BlockId> cut;  ///< equal ones are one block
    BlockId dispatch = -1;     ///< beside `cut`, where dispatching takes longer than the pass by itself
    std::vector<PassSlice> slices;
  };
  struct Bucket {
    Work backward;
    std::vector<BlockId> stages;  ///< kernels before each transfer; −1 where there are none
    BlockId after = -1;
  };
  struct Chunk {
    PerPass<Work> passes;
    std::vector<Bucket> buckets;
    std::vector<Work> gathered;  ///< parts of the first forward pass, where they wait for weights
    std::vector<Work> unit_forward, unit_backward;
  };

  explicit StepBlocks(const Step& step);

  std::vector<Block> blocks;
  std::size_t passes = 0;                       ///< the first so many are those of `chunks`
  std::vector<std::vector<Chunk>> chunks;       ///< by rank class
  std::vector<std::vector<BlockId>> transfers;  ///< by part
  std::vector<BlockId> optimizers;              ///< by rank class
  BlockId pass_done = -1, gradient_norm = -1, slowest_replica = -1, checkpoint = -1;
  /// All that decides which blocks and tasks the step's graph has, and in which order: two steps of the same shape
  /// differ in durations, names, recipes and the data of transfers, and in nothing else. Lists begin with their
  /// lengths, so that no two shapes are written alike.
  std::vector<std::int64_t> shape;

 private:
  BlockId add(const char* name, Seconds duration, Category category, RecipePointer recipe = nullptr);
  BlockId add_kernels(Seconds duration, const RecipePointer& recipe);
  void add_buckets(const Step::Chunk& chunk, Chunk& added);
  Work add_work(const char* name, const PassCost& pass_cost, bool cut);
  Chunk add_chunk(const Step& step, const Step::RankClass& rank_class, const Step::Chunk& chunk);
  void note(std::span<const int> numbers);
};

}  // namespace foretrain
