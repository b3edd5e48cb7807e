#include "model/planning/pipeline_walk.hpp"

#include <algorithm>
#include <utility>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/session.hpp"

namespace foretrain {

namespace {

/// Where every stage is in its order, and when what it waits for arrives.
class Walk {
 public:
  Walk(const ChunkPlacement& placement, const std::vector<std::vector<PipelinePass>>& orders, int micro_batches,
       const std::vector<std::vector<PerPass<Seconds>>>& passes, Seconds hop)
      : placement_(placement),
        orders_(orders),
        passes_(passes),
        micro_batches_(at_index(micro_batches)),
        hop_(hop),
        now_(orders.size()),
        next_(orders.size(), 0) {
    const std::size_t places = orders.size() * at_index(placement.chunks()) * micro_batches_;
    arrived_.assign(places, Seconds(-1.0));
    gradient_arrived_.assign(places, Seconds(-1.0));
    for (std::size_t stage = 0; stage < orders.size(); ++stage) {
      PipelineWalk::Stage& own = result_.stages.emplace_back();
      own.last_gradients.resize(at_index(placement.chunks()));
      for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
        const auto number = static_cast<int>(stage);
        if (!placement.previous(number, chunk)) open(arrived_, stage, chunk);
        if (!placement.next(number, chunk)) open(gradient_arrived_, stage, chunk);
      }
    }
  }

  PipelineWalk run() && {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < orders_.size(); ++stage) {
        while (next_[stage] < orders_[stage].size() && advance(stage)) moved = true;
      }
    }
    for (std::size_t stage = 0; stage < orders_.size(); ++stage) result_.stages[stage].end = now_[stage];
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::size_t at(std::size_t stage, int chunk, int micro_batch) const {
    return (stage * at_index(placement_.chunks()) + at_index(chunk)) * micro_batches_ + at_index(micro_batch);
  }
  /// What enters the pipeline there waits for nothing.
  void open(std::vector<Seconds>& arrivals, std::size_t stage, int chunk) {
    const auto first = arrivals.begin() + static_cast<std::ptrdiff_t>(at(stage, chunk, 0));
    std::fill(first, first + static_cast<std::ptrdiff_t>(micro_batches_), Seconds(0.0));
  }

  /// False where the stage has to wait for another that is behind.
  bool advance(std::size_t stage) {
    const std::vector<PipelinePass>& order = orders_[stage];
    const std::size_t together = order[next_[stage]].kind == PassKind::paired ? 2 : 1;
    Seconds begin = now_[stage];
    for (std::size_t i = 0; i < together; ++i) {
      const PipelinePass& pass = order[next_[stage] + i];
      if (pass.kind == PassKind::weights) continue;  // behind the other part on the same stage
      const Seconds arrival = (pass.backward() ? gradient_arrived_ : arrived_)[at(stage, pass.chunk, pass.micro_batch)];
      if (arrival < Seconds(0.0)) return false;
      begin = std::max(begin, arrival);
    }
    const PipelinePass& first = order[next_[stage]];
    now_[stage] = begin + passes_[stage][at_index(first.chunk)][first.kind];
    for (std::size_t i = 0; i < together; ++i) {
      const PipelinePass& pass = order[next_[stage] + i];
      if (pass.makes_weight_gradients()) result_.stages[stage].last_gradients[at_index(pass.chunk)] = begin;
      if (pass.kind != PassKind::weights) send(stage, pass);
    }
    next_[stage] += together;
    return true;
  }

  void send(std::size_t stage, const PipelinePass& pass) {
    const auto number = static_cast<int>(stage);
    const auto to = pass.backward() ? placement_.previous(number, pass.chunk) : placement_.next(number, pass.chunk);
    if (!to) return;
    const auto there = static_cast<std::size_t>(to->stage);
    (pass.backward() ? gradient_arrived_ : arrived_)[at(there, to->chunk, pass.micro_batch)] =
        now_[stage] + (there == stage ? Seconds(0.0) : hop_);
  }

  const ChunkPlacement& placement_;
  const std::vector<std::vector<PipelinePass>>& orders_;
  const std::vector<std::vector<PerPass<Seconds>>>& passes_;
  std::size_t micro_batches_;
  Seconds hop_;
  std::vector<Seconds> now_;
  std::vector<std::size_t> next_;
  std::vector<Seconds> arrived_, gradient_arrived_;  ///< by stage, chunk and micro-batch; below 0: not yet
  PipelineWalk result_;
};

}  // namespace

std::shared_ptr<const PipelineOrders> walked_orders(const PipelineShape& shape) {
  constexpr std::size_t most_passes = 60'000;
  const int chunks = ChunkPlacement(shape.schedule, shape.stages, shape.interleave).chunks();
  if (2 * at_index(shape.stages) * at_index(shape.micro_batches) * at_index(chunks) > most_passes) return nullptr;
  return session().known(shape, [&] {
    PipelineOrders orders;
    for (int stage = 0; stage < shape.stages; ++stage) {
      orders.push_back(pipeline_order(shape.schedule, shape.stages, stage, shape.interleave, shape.micro_batches));
    }
    return orders;
  });
}

PipelineWalk walk_pipeline(const ChunkPlacement& placement, const PipelineOrders& orders, int micro_batches,
                           const std::vector<std::vector<PerPass<Seconds>>>& passes, Seconds hop) {
  return Walk(placement, orders, micro_batches, passes, hop).run();
}

}  // namespace foretrain
