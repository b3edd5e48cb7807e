#include "model/training/graph/step_blocks.hpp"

#include <utility>

#include "model/base/number.hpp"

namespace foretrain {

StepBlocks::StepBlocks(const Step& step) {
  for (const Step::Lane& lane : step.lanes) {
    std::vector<Chunk>& of_lane = chunks.emplace_back();
    for (const Step::Chunk& chunk : lane.chunks) {
      of_lane.push_back(add_chunk(chunk, splits_backward(step.schedule), step.gather_overlap));
    }
  }
  passes = blocks.size();
  for (std::size_t lane = 0; lane < step.lanes.size(); ++lane) {
    for (std::size_t k = 0; k < chunks[lane].size(); ++k) add_kernels(step.lanes[lane].chunks[k], chunks[lane][k]);
  }
  for (const Step::Lane& lane : step.lanes) {
    optimizers.push_back(add("optimizer", lane.optimizer.total(), Category::optimizer, lane.optimizer_recipe));
    blocks.back().inside.exposed_copies = lane.optimizer.exposed_copies;
    blocks.back().inside.hidden_copies = lane.optimizer.hidden_copies;
  }
  for (const Step::Transfer& transfer : step.transfers) {
    std::vector<BlockId>& parts = transfers.emplace_back();
    for (const Step::Transfer::Part& part : transfer.parts) {
      parts.push_back(add(transfer.name.c_str(), part.uncontended, Category::communication, transfer.recipe));
      blocks.back().flows = part.lowered;
      blocks.back().links = part.links;
      blocks.back().kind = transfer.inside;
    }
  }
  pass_done = add("pass done", Seconds(0.0), Category::compute);
  gradient_norm = add("gradient norm", step.gradient_norm, Category::communication, step.norm_recipe);
  if (step.slowest_replica > Seconds(0.0)) {
    slowest_replica = add("waiting for the slowest replica", step.slowest_replica, Category::communication);
  }
  if (step.checkpoint) {
    checkpoint = add("checkpoint copy", step.checkpoint->uncontended, Category::communication);
    blocks.back().flows = step.checkpoint->lowered;
  }
}

BlockId StepBlocks::add(const char* name, Seconds duration, Category category, RecipePointer recipe) {
  blocks.push_back({name, category, duration, {}, {}, std::move(recipe)});
  return static_cast<BlockId>(blocks.size() - 1);
}

/// Adds the kernels that the chunk's buckets are synchronised with.
void StepBlocks::add_kernels(const Step::Chunk& chunk, Chunk& added) {
  const auto kernels = [this](Seconds duration, const RecipePointer& recipe) {
    return duration > Seconds(0.0) ? add("gradient compression", duration, Category::compute, recipe) : -1;
  };
  for (std::size_t b = 0; b < chunk.buckets.size(); ++b) {
    const GradientBucket& bucket = chunk.buckets[b];
    Bucket& own = added.buckets[b];
    for (const GradientBucket::Stage& stage : bucket.stages) own.stages.push_back(kernels(stage.kernels, stage.recipe));
    own.after = kernels(bucket.after, bucket.after_recipe);
  }
}

namespace {

/// Whether the pass, alone, ends when its host has dispatched it: some time after its kernels.
bool is_dispatched(const Stretch& stretch) { return stretch.time.host > Seconds(0.0); }

}  // namespace

StepBlocks::Work StepBlocks::add_work(const char* name, const Stretch& stretch) {
  Work work{add(name, stretch.time.total(), Category::compute, stretch.recipe), {}, -1, &stretch.pieces};
  blocks.back().inside = stretch.time;
  work.cut.reserve(stretch.pieces.size());
  for (const Piece& piece : stretch.pieces) work.cut.push_back(add(name, piece.work, Category::compute));
  if (stretch.pieces.empty()) return work;
  // The last one is what dispatching and copies take longer (fit_pieces); dispatching and collectives are tasks.
  blocks.back().uncontended = stretch.time.exposed_copies;
  blocks.back().inside = {{}, {}, stretch.time.exposed_copies, stretch.time.hidden_copies, {}};
  if (!is_dispatched(stretch)) return work;
  work.dispatch = add("dispatch", stretch.time.total(), Category::host);
  blocks.back().inside.host = stretch.time.host;
  return work;
}

StepBlocks::Chunk StepBlocks::add_chunk(const Step::Chunk& chunk, bool split, bool gather_overlap) {
  constexpr PerPass<const char*> names{
      {"forward", "backward", "backward of inputs", "backward of weights", "forward and backward"}};
  Chunk added;
  for (const PassKind kind : pass_kinds) {
    const bool usual = kind == PassKind::forward || kind == PassKind::backward;
    if (usual ? chunk.units.empty() : split) added.passes[kind] = add_work(names[kind], chunk.passes[kind]);
  }
  for (const GradientBucket& bucket : chunk.buckets) {
    added.buckets.emplace_back().backward = add_work("backward", bucket.backward);
  }
  for (const WeightGather& gather : chunk.gathers) {
    if (gather_overlap) added.gathered.push_back(add_work("forward", gather.forward));
  }
  for (const ShardedUnit& unit : chunk.units) {
    added.unit_forward.push_back(add_work("forward", unit.forward));
    added.unit_backward.push_back(add_work("backward", unit.backward));
  }
  return added;
}

namespace {

/// Lists begin with their lengths, so that no two shapes are written alike.
class ShapeWriter {
 public:
  void add(std::int64_t number) { shape_.push_back(number); }
  void add(const std::vector<int>& numbers) {
    add(std::ssize(numbers));
    shape_.insert(shape_.end(), numbers.begin(), numbers.end());
  }
  void add(const Stretch& stretch) {
    add(std::ssize(stretch.pieces));
    add(!stretch.pieces.empty() && is_dispatched(stretch) ? 1 : 0);
    for (const Piece& piece : stretch.pieces) {
      add(piece.beside ? 1 : 0);
      add(piece.transfers);
    }
  }
  void add(const Step::Chunk& chunk) {
    for (const Stretch& pass : chunk.passes) add(pass);
    add(std::ssize(chunk.buckets));
    for (const GradientBucket& bucket : chunk.buckets) {
      add(bucket.backward);
      add_kernels(bucket.after);
      add(std::ssize(bucket.stages));
      for (const GradientBucket::Stage& stage : bucket.stages) {
        add(stage.transfer);
        add_kernels(stage.kernels);
      }
    }
    add(std::ssize(chunk.gathers));
    for (const WeightGather& gather : chunk.gathers) {
      add(gather.transfers);
      add(gather.forward);
    }
    add(std::ssize(chunk.units));
    for (const ShardedUnit& unit : chunk.units) {
      add(unit.forward);
      add(unit.backward);
      for (const int transfer : {unit.gather, unit.gather_backward, unit.scatter, unit.reduce}) add(transfer);
    }
  }
  void add(const Step::Lane& lane) {
    for (const int number : {lane.stage, lane.first_rank, lane.skipped, static_cast<int>(lane.cut)}) add(number);
    add(lane.companions);
    add(std::ssize(lane.chunks));
    for (const Step::Chunk& chunk : lane.chunks) add(chunk);
  }
  std::vector<std::int64_t> take() && { return std::move(shape_); }

 private:
  void add_kernels(Seconds time) { add(time > Seconds(0.0) ? 1 : 0); }

  std::vector<std::int64_t> shape_;
};

}  // namespace

std::vector<std::int64_t> shape_of(const Step& step) {
  ShapeWriter shape;
  for (const int number : {static_cast<int>(step.schedule), step.interleave, step.micro_batches, step.overlap ? 1 : 0,
                           step.every_micro_batch ? 1 : 0, step.gather_overlap ? 1 : 0, step.blocking_messages ? 1 : 0,
                           step.checkpoint ? 1 : 0, step.slowest_replica > Seconds(0.0) ? 1 : 0}) {
    shape.add(number);
  }
  shape.add(std::ssize(step.lanes));
  for (const Step::Lane& lane : step.lanes) shape.add(lane);
  shape.add(std::ssize(step.transfers));
  for (const Step::Transfer& transfer : step.transfers) {
    shape.add(std::ssize(transfer.parts));
    for (const Step::Transfer::Part& part : transfer.parts) shape.add(part.lanes);
  }
  shape.add(step.activations);
  shape.add(step.activation_gradients);
  return std::move(shape).take();
}

}  // namespace foretrain
