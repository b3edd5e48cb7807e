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
  return kind == GroupKind::expert ? "expert all-to-all" : nullptr;
}

}  // namespace

StepBlocks::StepBlocks(const Step& step)
    : shape{
          static_cast<int>(step.schedule),    step.interleave,     step.micro_batches,     step.overlap,
          step.sync_each_micro_batch,         step.gather_overlap, step.blocking_messages, step.checkpoint.has_value(),
          step.slowest_replica > Seconds(0.0)} {
  blocks.reserve(1024);  // as many as most steps have
  shape.reserve(4096);
  shape.push_back(std::ssize(step.rank_classes));
  for (const Step::RankClass& rank_class : step.rank_classes) {
    note(std::array{rank_class.stage, rank_class.first_rank, rank_class.missing_micro_batches,
                    static_cast<int>(rank_class.split)});
    note(rank_class.lockstep_classes);
    shape.push_back(std::ssize(rank_class.chunks));
    std::vector<Chunk>& of_class = chunks.emplace_back();
    for (const Step::Chunk& chunk : rank_class.chunks) {
      of_class.push_back(add_chunk(step, rank_class, chunk));
    }
  }
  passes = blocks.size();
  for (std::size_t rank_class = 0; rank_class < step.rank_classes.size(); ++rank_class) {
    for (std::size_t k = 0; k < chunks[rank_class].size(); ++k)
      add_buckets(step.rank_classes[rank_class].chunks[k], chunks[rank_class][k]);
  }
  for (const Step::RankClass& rank_class : step.rank_classes) {
    optimizers.push_back(
        add("optimizer", rank_class.optimizer.total(), Category::optimizer, rank_class.optimizer_recipe));
    blocks.back().inside.exposed_copies = rank_class.optimizer.exposed_copies;
    blocks.back().inside.hidden_copies = rank_class.optimizer.hidden_copies;
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
      note(part.rank_classes);
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
  blocks.emplace_back(name, category, duration, std::nullopt, DeviceShare{0.0, 0.0}, std::move(recipe));
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

StepBlocks::Work StepBlocks::add_work(const char* name, const PassCost& pass_cost, bool cut) {
  Work work{add(name, pass_cost.time.total(), Category::compute, pass_cost.recipe), {}, -1, {}};
  blocks.back().inside = pass_cost.time;
  if (cut) work.slices = slices_of(pass_cost);
  shape.push_back(std::ssize(work.slices));
  if (work.slices.empty()) return work;
  work.cut.reserve(work.slices.size());
  std::vector<Seconds> times;  // of the slices' blocks, which follow the whole pass
  for (const PassSlice& slice : work.slices) {
    const auto same = static_cast<BlockId>(std::ranges::find(times, slice.work) - times.begin());
    const bool is_new = std::cmp_equal(same, times.size()) || &slice == &work.slices.back();
    work.cut.push_back(is_new ? add(name, slice.work, Category::compute) : work.whole + 1 + same);
    if (is_new) times.push_back(slice.work);
    const std::int64_t block = work.cut.back() - work.whole;
    shape.push_back(std::ssize(slice.transfers) << 32U | block << 1U | (slice.beside ? 1 : 0));
    for (const int transfer : slice.transfers) shape.push_back(transfer);
  }
  // The last one is what dispatching and copies take longer; dispatching and collectives are tasks.
  blocks.back().uncontended = pass_cost.time.exposed_copies;
  blocks.back().inside = {{}, {}, pass_cost.time.exposed_copies, pass_cost.time.hidden_copies, {}};
  const bool dispatched = pass_cost.time.host > Seconds(0.0);  // it ends, alone, some time after its kernels
  shape.push_back(dispatched ? 1 : 0);
  if (!dispatched) return work;
  work.dispatch = add("dispatch", pass_cost.time.total(), Category::host);
  blocks.back().inside.host = pass_cost.time.host;
  return work;
}

StepBlocks::Chunk StepBlocks::add_chunk(const Step& step, const Step::RankClass& rank_class, const Step::Chunk& chunk) {
  using SplitMode = Step::RankClass::SplitMode;
  const bool cut = rank_class.split != SplitMode::none;
  // The last backward pass of an only chunk runs bucket by bucket, so that no whole pass is at the step's ends.
  const bool only =
      rank_class.chunks.size() == 1 && step.overlap && !step.gather_overlap && !splits_backward(step.schedule);
  const bool cut_whole = rank_class.split == SplitMode::all || (cut && !only);
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
  added.buckets.reserve(chunk.buckets.size());
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
