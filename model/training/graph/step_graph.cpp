#include "model/training/graph/step_graph.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/base/session.hpp"
#include "model/training/graph/step_graph_builder.hpp"

namespace foretrain {

namespace {

/// Whether synchronising the rank class's gradients takes kernels beside transfers.
bool has_kernels(const Step::RankClass& rank_class) {
  for (const Step::Chunk& chunk : rank_class.chunks) {
    for (const GradientBucket& bucket : chunk.buckets) {
      if (bucket.after > Seconds(0.0)) return true;
      for (const GradientBucket::Stage& stage : bucket.stages) {
        if (stage.kernels > Seconds(0.0)) return true;
      }
    }
  }
  return false;
}

}  // namespace

StepGraphBuilder::StepGraphBuilder(const Step& step, const StepBlocks& blocks)
    : step_(step),
      blocks_(blocks),
      stages_(step.stage_count()),
      placement_(step.placement()),
      previous_pass_(step.rank_classes.size(), -1),
      forward_(step.rank_classes.size(), std::vector<TaskId>(at(placement_.chunks(), 0), -1)),
      input_(forward_),
      gradient_input_(forward_),
      awaited_(step.rank_classes.size()),
      gradient_tasks_(step.rank_classes.size()),
      last_gradients_(step.rank_classes.size(), {-1, -1}),
      gradients_begun_(at_index(stages_)),
      weights_awaited_(at_index(stages_), std::vector<bool>(at_index(placement_.chunks()))),
      gathered_(at_index(stages_) * at_index(placement_.chunks())) {
  result_.last_backward.resize(step.rank_classes.size(), -1);
  for (std::size_t rank_class = 0; rank_class < step.rank_classes.size(); ++rank_class) {
    while (std::cmp_less_equal(first_class_.size(), step.rank_classes[rank_class].stage)) {
      first_class_.push_back(static_cast<int>(rank_class));
    }
  }
  first_class_.push_back(static_cast<int>(step.rank_classes.size()));
  numbers_.resize(blocks.blocks.size(), -1);
  for (std::size_t i = 0; i < blocks.passes; ++i) number_of(static_cast<BlockId>(i));
  add_streams();
}

std::string StepGraphBuilder::stream_name(std::size_t number) const {
  const Step::RankClass& rank_class = step_.rank_classes[number];
  std::string name = "stage " + std::to_string(rank_class.stage);
  if (classes_in(rank_class.stage) > 1) name += ", rank " + std::to_string(rank_class.first_rank);
  return name;
}

void StepGraphBuilder::add_streams() {
  using Kind = Resource::Kind;
  for (std::size_t i = 0; i < step_.rank_classes.size(); ++i) {
    const Step::RankClass& rank_class = step_.rank_classes[i];
    const std::string name = stream_name(i);
    const int number = static_cast<int>(i);
    const auto stream = [&](const char* what, Kind kind) { return builder_.add_resource({name + what, kind, number}); };
    streams_.push_back({stream(" compute", Kind::device_stream), stream(" gradients", Kind::communication_stream),
                        stream(" to next", Kind::communication_stream),
                        stream(" to previous", Kind::communication_stream)});
    result_.compute.push_back(streams_.back().compute);
    if (has_kernels(rank_class)) streams_.back().gradient_kernels = stream(" gradient kernels", Kind::device_stream);
  }
}

/// The graph's blocks stand for those of any step of this shape.
BlockId StepGraphBuilder::number_of(BlockId block) {
  BlockId& number = numbers_[at_index(block)];
  if (number < 0) {
    number = builder_.add_block({});
    used_.push_back(block);
  }
  return number;
}

TaskId StepGraphBuilder::add(BlockId block, ResourceId resource, std::vector<TaskId> after, int micro_batch) {
  std::erase(after, -1);
  return builder_.add_task({number_of(block), resource, micro_batch}, after);
}

bool StepGraphBuilder::is_cut(int stage) const {
  using SplitMode = Step::RankClass::SplitMode;
  const SplitMode cut = step_.rank_classes[at_index(first_class(stage))].split;
  if (cut != SplitMode::ends) return cut == SplitMode::all;
  return gradients_begun_[at_index(stage)] || awaits_weights(stage);
}

/// A pass of work on every rank class of the stage; where it is cut, with the collectives inside its layers.
StepGraphBuilder::PerClass StepGraphBuilder::add_work(int stage, const PipelinePass& pass, AfterPerClass after,
                                                      const WorkOf& work_of) {
  if (is_cut(stage) && !work_of(blocks_.chunks[class_in(stage, 0)]).cut.empty()) {
    return add_slices(stage, pass, std::move(after), work_of);
  }
  PerClass done;
  for (std::size_t i = 0; i < classes_in(stage); ++i) {
    const std::size_t rank_class = class_in(stage, i);
    const bool skips = pass.micro_batch < step_.rank_classes[rank_class].missing_micro_batches;
    const BlockId block = skips ? blocks_.pass_done : work_of(blocks_.chunks[rank_class]).whole;
    done.push_back(add(block, streams_[rank_class].compute, std::move(after[i]), pass.micro_batch));
  }
  return done;
}

/// A pass's host runs ahead from the pass's beginning on, also while the pass waits for other ranks.
TaskId StepGraphBuilder::add_dispatch(std::size_t rank_class, BlockId block, const std::vector<TaskId>& after,
                                      int micro_batch) {
  ResourceId& host = streams_[rank_class].host;
  if (host < 0) {
    const int number = static_cast<int>(rank_class);
    host = builder_.add_resource({stream_name(rank_class) + " dispatch", Resource::Kind::host_thread, number});
  }
  return add(block, host, after, micro_batch);
}

StepGraphBuilder::PerClass StepGraphBuilder::add_slices(int stage, const PipelinePass& pass, AfterPerClass after,
                                                        const WorkOf& work_of) {
  const std::size_t rank_classes = classes_in(stage);
  const auto work = [&](std::size_t i) -> const Work& { return work_of(blocks_.chunks[class_in(stage, i)]); };
  const auto compute = [&](std::size_t i) { return streams_[class_in(stage, i)].compute; };
  const auto skips = [&](std::size_t i) {
    return pass.micro_batch < step_.rank_classes[class_in(stage, i)].missing_micro_batches;
  };
  PerClass done(rank_classes, -1), dispatched(rank_classes, -1);
  for (std::size_t i = 0; i < rank_classes; ++i) {
    if (skips(i) || work(i).dispatch < 0) continue;
    dispatched[i] = add_dispatch(class_in(stage, i), work(i).dispatch, after[i], pass.micro_batch);
  }
  for (std::size_t k = 0; k < work(0).cut.size(); ++k) {
    AfterPerClass worked(rank_classes);
    for (std::size_t i = 0; i < rank_classes; ++i) {
      worked[i] = {add(skips(i) ? blocks_.pass_done : work(i).cut[k], compute(i), after[i], pass.micro_batch)};
    }
    const PassSlice& slice = work(0).slices[k];
    AfterPerClass moved = slice.beside ? after : worked;
    for (const int transfer : slice.transfers) {
      const PerClass tasks = add_transfer(stage, transfer, Traffic::inside_layers, moved, pass.micro_batch);
      for (std::size_t i = 0; i < rank_classes; ++i) moved[i] = {tasks[i]};
    }
    after = std::move(moved);
    for (std::size_t i = 0; slice.beside && i < rank_classes; ++i) after[i].push_back(worked[i].front());
  }
  for (std::size_t i = 0; i < rank_classes; ++i) {
    if (dispatched[i] >= 0) after[i].push_back(dispatched[i]);
    done[i] = after[i].size() == 1 ? after[i].front() : meet(compute(i), std::move(after[i]), pass.micro_batch);
  }
  return done;
}

/// The end of a pass, where its streams wait for each other.
TaskId StepGraphBuilder::meet(ResourceId resource, std::vector<TaskId> ends, int micro_batch) {
  return add(blocks_.pass_done, resource, std::move(ends), micro_batch);
}

/// A backward pass whose gradients are synchronised bucket by bucket, beside it or after it. The last one of a step
/// ends when its own work is done; the optimizer waits for the gradients. An earlier one waits for them itself.
StepGraphBuilder::PerClass StepGraphBuilder::add_synchronised_backward(int stage, const PipelinePass& pass,
                                                                       AfterPerClass after) {
  const std::size_t buckets = chunk_of(stage, pass.chunk).buckets.size();
  PerClass done;
  if (step_.overlap) {
    for (std::size_t b = 0; b < buckets; ++b) {
      done = add_work(stage, pass, std::move(after), [&](const auto& chunks) -> const Work& {
        return chunks[at_index(pass.chunk)].buckets[b].backward;
      });
      after.clear();
      for (const TaskId task : done) after.push_back({task});
      add_bucket(stage, pass.chunk, b, done);
    }
  } else {
    done = add_work(stage, pass, std::move(after),
                    [&](const auto& chunks) -> const Work& { return chunks[at_index(pass.chunk)].passes[pass.kind]; });
    for (std::size_t b = 0; b < buckets; ++b) add_bucket(stage, pass.chunk, b, done);
  }
  if (is_last(stage, pass)) return done;
  for (std::size_t i = 0; i < done.size(); ++i) {
    const std::size_t rank_class = class_in(stage, i);
    std::vector<TaskId> ends = std::exchange(gradient_tasks_[rank_class], {});
    ends.push_back(done[i]);
    done[i] = meet(streams_[rank_class].compute, std::move(ends), pass.micro_batch);
  }
  return done;
}

/// Rank classes that do a pass together begin it when all of them can.
void StepGraphBuilder::wait_for_companions(int stage, AfterPerClass& after) const {
  const AfterPerClass own = after;
  for (std::size_t i = 0; i < after.size(); ++i) {
    for (const int other : step_.rank_classes[class_in(stage, i)].lockstep_classes) {
      if (std::cmp_equal(other, class_in(stage, i))) continue;
      const std::vector<TaskId>& others = own[at_index(other - first_class(stage))];
      after[i].insert(after[i].end(), others.begin(), others.end());
      after[i].push_back(previous_pass_[at_index(other)]);
    }
  }
}

/// Adds the inputs that the pass waits for beside its place in the order; false if they do not exist yet.
bool StepGraphBuilder::add_inputs(int stage, const PipelinePass& pass, AfterPerClass& after) const {
  if (pass.kind == PassKind::weights) return true;  // behind the other part on the same stream
  const auto from = pass.backward() ? placement_.next(stage, pass.chunk) : placement_.previous(stage, pass.chunk);
  const std::size_t number = at(pass.chunk, pass.micro_batch);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::size_t rank_class = class_in(stage, i);
    if (pass.backward() && forward_[rank_class][number] >= 0) after[i].push_back(forward_[rank_class][number]);
    if (!from) continue;
    const TaskId arrival = (pass.backward() ? gradient_input_ : input_)[rank_class][number];
    if (arrival < 0) return false;
    after[i].push_back(arrival);
  }
  return true;
}

bool StepGraphBuilder::advance(int stage, std::span<const PipelinePass> passes) {
  AfterPerClass after(classes_in(stage));
  for (const PipelinePass& pass : passes) {
    if (!add_inputs(stage, pass, after)) return false;
  }
  wait_for_messages(stage, after);
  wait_for_companions(stage, after);

  const PipelinePass& pass = passes.front();
  const Step::Chunk& chunk = chunk_of(stage, pass.chunk);
  const bool last = is_last(stage, pass);
  if (last) gradients_begun_[at_index(stage)] = true;
  if (!chunk.units.empty() || is_cut(stage)) {  // a pass may end with a collective, which its stream knows nothing of
    for (std::size_t i = 0; i < after.size(); ++i) after[i].push_back(previous_pass_[class_in(stage, i)]);
  }
  PerClass done;
  if (!chunk.units.empty()) {
    done = add_sharded(stage, pass, after);
  } else if (!pass.backward() && weights_awaited_[at_index(stage)][at_index(pass.chunk)]) {
    done = add_first_forward(stage, pass, std::move(after));
    weights_awaited_[at_index(stage)][at_index(pass.chunk)] = false;
  } else if (pass.makes_weight_gradients() && (last ? step_.overlap : step_.sync_each_micro_batch)) {
    done = add_synchronised_backward(stage, pass, std::move(after));
  } else {
    done = add_work(stage, pass, std::move(after),
                    [&](const auto& chunks) -> const Work& { return chunks[at_index(pass.chunk)].passes[pass.kind]; });
  }
  for (std::size_t i = 0; i < done.size(); ++i) {
    const std::size_t rank_class = class_in(stage, i);
    previous_pass_[rank_class] = done[i];
    for (const PipelinePass& ended : passes) {
      if (ended.backward()) {
        result_.last_backward[rank_class] = done[i];
      } else {
        forward_[rank_class][at(ended.chunk, ended.micro_batch)] = done[i];
      }
    }
  }
  for (const PipelinePass& ended : passes) send(stage, ended, done);
  return true;
}

/// Copies of the GPUs' state to their hosts, from the step's beginning; −1 where it has none.
TaskId StepGraphBuilder::add_checkpoint() {
  if (!step_.checkpoint) return -1;
  const ResourceId engine = builder_.add_resource({"checkpoint", Resource::Kind::copy_engine, 0});
  return add(blocks_.checkpoint, engine, {});
}

void StepGraphBuilder::note_arrivals() {
  std::set<BlockId> arrivals;
  const auto note = [&](int transfer) {
    if (transfer < 0) return;
    for (const BlockId block : blocks_.transfers[at_index(transfer)]) {
      if (numbers_[at_index(block)] >= 0) arrivals.insert(numbers_[at_index(block)]);
    }
  };
  std::ranges::for_each(step_.activations, note);
  std::ranges::for_each(step_.activation_gradients, note);
  for (std::size_t rank_class = 0; step_.gather_overlap && rank_class < step_.rank_classes.size(); ++rank_class) {
    for (const Step::Chunk& chunk : step_.rank_classes[rank_class].chunks) {
      for (const WeightGather& gather : chunk.gathers) std::ranges::for_each(gather.transfers, note);
    }
  }
  result_.arrivals.assign(arrivals.begin(), arrivals.end());
}

void StepGraphBuilder::note_tasks() {
  const TaskGraph& graph = result_.graph;
  auto of_class = std::make_shared<std::vector<StepGraph::ClassTasks>>(step_.rank_classes.size());
  for (TaskId task = 0; std::cmp_less(task, graph.tasks().size()); ++task) {
    const Resource& resource = graph.resource_of(task);
    const bool on_host = resource.kind == Resource::Kind::host_thread;
    if (!on_host && resource.kind != Resource::Kind::device_stream) continue;
    const Block& block = blocks_.blocks[at_index(used_[at_index(graph.tasks()[at_index(task)].block)])];
    if (block.category == Category::communication) {
      for (StepGraph::ClassTasks& tasks : *of_class) tasks.beside.push_back(task);
      continue;
    }
    const std::size_t rank_class = at_index(resource.rank_class);
    const bool on_stream = graph.tasks()[at_index(task)].resource == result_.compute[rank_class];
    (on_host || on_stream ? (*of_class)[rank_class].works : (*of_class)[rank_class].beside).push_back(task);
  }
  result_.of_class = std::move(of_class);
}

StepTasks StepGraphBuilder::run() && {
  const TaskId checkpoint = add_checkpoint();
  std::vector<std::vector<PipelinePass>> order;
  std::size_t left = 0;
  for (int s = 0; s < stages_; ++s) {
    order.push_back(step_.order_of(s));
    last_gradients_of_.push_back(last_gradients(order.back(), placement_.chunks()));
    left += order.back().size();
  }
  if (step_.gather_overlap) gather_before_passes(order);
  std::vector<std::size_t> position(order.size(), 0);
  while (left > 0) {
    const std::size_t left_before = left;
    for (std::size_t s = 0; s < order.size(); ++s) {
      while (position[s] < order[s].size()) {
        const std::size_t together = order[s][position[s]].kind == PassKind::paired ? 2 : 1;
        if (!advance(static_cast<int>(s), std::span(order[s]).subspan(position[s], together))) break;
        position[s] += together;
        left -= together;
      }
    }
    if (left == left_before) throw InternalError("the stages' orders of passes wait for each other");
  }

  std::vector<TaskId> all_done;
  for (int s = 0; s < stages_; ++s) {
    PerClass last(result_.last_backward.begin() + first_class(s), result_.last_backward.begin() + first_class(s + 1));
    wait_for_messages(s, last);
    for (int k = placement_.chunks(); !step_.overlap && k-- > 0;) {
      for (std::size_t b = 0; b < chunk_of(s, k).buckets.size(); ++b) add_bucket(s, k, b, last);
    }
    for (std::size_t i = 0; i < last.size(); ++i) {
      const std::vector<TaskId>& gradients = gradient_tasks_[class_in(s, i)];
      all_done.push_back(last[i]);
      all_done.insert(all_done.end(), gradients.begin(), gradients.end());
    }
  }
  if (blocks_.slowest_replica >= 0) {
    all_done = {add(blocks_.slowest_replica, streams_.front().compute, std::move(all_done))};
  }
  result_.synchronised = add(blocks_.gradient_norm, streams_.front().compute, std::move(all_done));
  AfterPerClass updated;
  for (std::size_t i = 0; i < step_.rank_classes.size(); ++i) {
    updated.push_back({add(blocks_.optimizers[i], streams_[i].compute, {result_.synchronised, checkpoint})});
  }
  for (int s = 0; s < stages_ && !step_.gather_overlap; ++s) {
    for (int k = 0; k < placement_.chunks(); ++k) gather_weights(s, k, updated);
  }
  if (stages_ > 1) note_arrivals();
  result_.graph = std::move(builder_).build();
  note_tasks();
  return {std::move(result_), std::move(used_)};
}

namespace {

struct ShapeKey {
  using Value = const StepTasks;
  std::vector<std::int64_t> shape;  ///< of the step

  bool operator==(const ShapeKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(shape); }
  [[nodiscard]] std::size_t bytes(const StepTasks& tasks) const { return 100 * tasks.graph.graph.tasks().size(); }
};

}  // namespace

StepGraph step_graph(const Step& step) {
  StepBlocks blocks(step);
  const auto tasks =
      session().known(ShapeKey{std::move(blocks.shape)}, [&] { return StepGraphBuilder(step, blocks).run(); });
  const auto passes = static_cast<std::ptrdiff_t>(blocks.passes);  // numbered alike
  std::vector<Block> used = std::move(blocks.blocks);
  std::vector<Block> others(std::move_iterator(used.begin() + passes), std::move_iterator(used.end()));
  used.erase(used.begin() + passes, used.end());
  for (const BlockId block : tasks->blocks | std::views::drop(passes)) {
    used.push_back(std::move(others[at_index(block) - blocks.passes]));
  }
  const StepGraph& known = tasks->graph;
  StepGraph graph{known.graph.with_blocks(std::move(used)),
                  known.compute,
                  known.of_class,
                  known.transfers,
                  known.last_backward,
                  known.synchronised,
                  known.arrivals};
  return graph;
}

}  // namespace foretrain
