#include "model/training/graph/step_blocks.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// Null for what is not inside layers.
const char* name_inside_layers(GroupKind kind) {
  if (kind == GroupKind::tensor) return "tensor-parallel collectives";
  if (kind == GroupKind::context) return "context-parallel ring";
  return kind == GroupKind::expert ? "exchange of tokens" : nullptr;
}

}  // namespace

StepBlocks::StepBlocks(const Step& step)
    : shape{static_cast<int>(step.schedule),
            step.interleave,
            step.micro_batches,
            step.overlap,
            step.every_micro_batch,
            step.gather_overlap,
            step.blocking_messages,
            step.checkpoint.has_value(),
            step.slowest_replica > Seconds(0.0)} {
  shape.push_back(std::ssize(step.lanes));
  for (const Step::Lane& lane : step.lanes) {
    note(std::array{lane.stage, lane.first_rank, lane.skipped, static_cast<int>(lane.cut)});
    note(lane.companions);
    shape.push_back(std::ssize(lane.chunks));
    std::vector<Chunk>& of_lane = chunks.emplace_back();
    for (const Step::Chunk& chunk : lane.chunks) {
      of_lane.push_back(add_chunk(step, lane, chunk));
    }
  }
  passes = blocks.size();
  for (std::size_t lane = 0; lane < step.lanes.size(); ++lane) {
    for (std::size_t k = 0; k < chunks[lane].size(); ++k) add_buckets(step.lanes[lane].chunks[k], chunks[lane][k]);
  }
  for (const Step::Lane& lane : step.lanes) {
    optimizers.push_back(add("optimizer", lane.optimizer.total(), Category::optimizer, lane.optimizer_recipe));
    blocks.back().inside.exposed_copies = lane.optimizer.exposed_copies;
    blocks.back().inside.hidden_copies = lane.optimizer.hidden_copies;
  }
  shape.push_back(std::ssize(step.transfers));
  for (const Step::Transfer& transfer : step.transfers) {
    std::vector<BlockId>& parts = transfers.emplace_back();
    shape.push_back(std::ssize(transfer.parts));
    for (const Step::Transfer::Part& part : transfer.parts) {
      parts.push_back(add(transfer.name.c_str(), part.uncontended, Category::communication, transfer.recipe));
      blocks.back().flows = part.lowered;
      blocks.back().links = part.links;
      blocks.back().kind = name_inside_layers(transfer.kind);
      note(part.lanes);
    }
  }
  note(step.activations);
  note(step.activation_gradients);
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

void StepBlocks::note(std::span<const int> numbers) {
  shape.push_back(std::ssize(numbers));
  shape.insert(shape.end(), numbers.begin(), numbers.end());
}

BlockId StepBlocks::add_kernels(Seconds duration, const RecipePointer& recipe) {
  const bool any = duration > Seconds(0.0);
  shape.push_back(any ? 1 : 0);
  return any ? add("gradient compression", duration, Category::compute, recipe) : -1;
}

/// Adds what the chunk's buckets are synchronised with.
void StepBlocks::add_buckets(const Step::Chunk& chunk, Chunk& added) {
  for (std::size_t b = 0; b < chunk.buckets.size(); ++b) {
    const GradientBucket& bucket = chunk.buckets[b];
    Bucket& own = added.buckets[b];
    shape.push_back(std::ssize(bucket.stages));
    for (const GradientBucket::Stage& stage : bucket.stages) {
      shape.push_back(stage.transfer);
      own.stages.push_back(add_kernels(stage.kernels, stage.recipe));
    }
    own.after = add_kernels(bucket.after, bucket.after_recipe);
  }
}

StepBlocks::Work StepBlocks::add_work(const char* name, const Stretch& stretch, bool cut) {
  Work work{add(name, stretch.time.total(), Category::compute, stretch.recipe), {}, -1, {}};
  blocks.back().inside = stretch.time;
  if (cut) work.pieces = pieces_of(stretch);
  shape.push_back(std::ssize(work.pieces));
  if (work.pieces.empty()) return work;
  std::vector<std::pair<Seconds, BlockId>> known;
  for (const Piece& piece : work.pieces) {
    auto same = std::ranges::find(known, piece.work, &std::pair<Seconds, BlockId>::first);
    const bool is_new = same == known.end() || &piece == &work.pieces.back();
    if (is_new) same = known.insert(known.end(), {piece.work, add(name, piece.work, Category::compute)});
    work.cut.push_back(same->second);
    shape.push_back(2 * (same->second - work.whole) + (piece.beside ? 1 : 0));
    note(piece.transfers);
  }
  // The last one is what dispatching and copies take longer; dispatching and collectives are tasks.
  blocks.back().uncontended = stretch.time.exposed_copies;
  blocks.back().inside = {{}, {}, stretch.time.exposed_copies, stretch.time.hidden_copies, {}};
  const bool dispatched = stretch.time.host > Seconds(0.0);  // it ends, alone, some time after its kernels
  shape.push_back(dispatched ? 1 : 0);
  if (!dispatched) return work;
  work.dispatch = add("dispatch", stretch.time.total(), Category::host);
  blocks.back().inside.host = stretch.time.host;
  return work;
}

StepBlocks::Chunk StepBlocks::add_chunk(const Step& step, const Step::Lane& lane, const Step::Chunk& chunk) {
  using Cut = Step::Lane::Cut;
  const bool cut = lane.cut != Cut::none;
  // The last backward pass of an only chunk runs bucket by bucket, so that no whole pass is at the step's ends.
  const bool only = lane.chunks.size() == 1 && step.overlap && !step.gather_overlap && !splits_backward(step.schedule);
  const bool cut_whole = lane.cut == Cut::all || (cut && !only);
  constexpr PerPass<const char*> names{
      {"forward", "backward", "backward of inputs", "backward of weights", "forward and backward"}};
  Chunk added;
  shape.push_back(std::ssize(chunk.units));
  for (const PassKind kind : pass_kinds) {
    const bool usual = kind == PassKind::forward || kind == PassKind::backward;
    if (usual ? !chunk.units.empty() : !splits_backward(step.schedule)) continue;
    added.passes[kind] = add_work(names[kind], chunk.passes[kind], cut_whole);
  }
  shape.push_back(std::ssize(chunk.buckets));
  for (const GradientBucket& bucket : chunk.buckets) {
    added.buckets.emplace_back().backward = add_work("backward", bucket.backward, cut);
  }
  shape.push_back(std::ssize(chunk.gathers));
  for (const WeightGather& gather : chunk.gathers) {
    note(gather.transfers);
    if (step.gather_overlap) added.gathered.push_back(add_work("forward", gather.forward, cut));
  }
  for (const ShardedUnit& unit : chunk.units) {
    note(std::array{unit.gather, unit.gather_backward, unit.scatter, unit.reduce});
    added.unit_forward.push_back(add_work("forward", unit.forward, cut));
    added.unit_backward.push_back(add_work("backward", unit.backward, cut));
  }
  return added;
}

}  // namespace foretrain
