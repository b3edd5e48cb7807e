#include "model/parallelism/pipeline_order.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// Micro-batches that go through one chunk before the next one takes them: as many as there are stages (arXiv
/// 2104.04473, section 2.2). The rest is spread over all groups, as PyTorch's ScheduleInterleaved1F1B has it.
/// A group shorter than the pipeline would have stages wait for each other for ever, which Megatron-LM refuses. Longer
/// groups come first.
std::vector<int> group_sizes(int stages, int micro_batches) {
  const int groups = std::max(1, micro_batches / stages);
  std::vector<int> sizes(at_index(groups), micro_batches / groups);
  for (int i = 0; i < micro_batches % groups; ++i) ++sizes[at_index(i)];
  return sizes;
}

/// Forward passes before the first backward pass that one alternates with.
int forward_passes_ahead(PipelineSchedule schedule, int stages, int stage, int interleave, int group) {
  if (schedule == PipelineSchedule::gpipe) return std::numeric_limits<int>::max();
  if (schedule == PipelineSchedule::interleaved) return 2 * (stages - stage - 1) + (interleave - 1) * group;
  return stages - stage - 1;
}

std::vector<PipelinePass> alternating_order(PipelineSchedule schedule, int stages, int stage, int interleave,
                                            int micro_batches) {
  // The k-th forward pass: micro-batches go in groups through one chunk after the other.
  const std::vector<int> groups = group_sizes(stages, micro_batches);
  std::vector<PipelinePass> forward;
  std::vector<PipelinePass> backward;
  int first = 0;
  for (const int group : groups) {
    for (int chunk = 0; chunk < interleave; ++chunk) {
      for (int m = first; m < first + group; ++m) {
        forward.push_back({PassKind::forward, chunk, m});
        backward.push_back({PassKind::backward, interleave - 1 - chunk, m});
      }
    }
    first += group;
  }
  const int total = micro_batches * interleave;
  const int ahead = std::min(forward_passes_ahead(schedule, stages, stage, interleave, groups.front()), total);
  std::vector<PipelinePass> order(forward.begin(), forward.begin() + ahead);
  order.reserve(2 * static_cast<std::size_t>(total));
  for (int k = ahead; k < total; ++k) {
    order.push_back(forward[static_cast<std::size_t>(k)]);
    order.push_back(backward[static_cast<std::size_t>(k - ahead)]);
  }
  order.insert(order.end(), backward.begin() + (total - ahead), backward.end());
  return order;
}

/// Passes in the order in which they are added; a chunk's micro-batches follow each other in each kind of pass.
class OrderBuilder {
 public:
  explicit OrderBuilder(int first_of_second_chunk = 0) : first_{0, first_of_second_chunk} {}

  void forward(int chunk, PassKind kind = PassKind::forward) { order_.push_back({kind, chunk, next(forward_, chunk)}); }
  void backward(int chunk) { order_.push_back({PassKind::backward, chunk, next(backward_, chunk)}); }
  void inputs(int chunk) {
    order_.push_back({PassKind::inputs, chunk, next(backward_, chunk)});
    put_off_.push_back({PassKind::weights, chunk, order_.back().micro_batch});
  }
  /// The gradients of weights that have waited longest, of this chunk or of any.
  void weights(int chunk) {
    const auto of_chunk = [chunk](const PipelinePass& pass) { return pass.chunk == chunk; };
    add(std::ranges::find_if(put_off_, of_chunk));
  }
  void weights() { add(put_off_.begin()); }
  [[nodiscard]] int waiting(int chunk) const {
    return static_cast<int>(std::ranges::count(put_off_, chunk, &PipelinePass::chunk));
  }
  [[nodiscard]] std::vector<PipelinePass> take() && { return std::move(order_); }

 private:
  int next(std::array<int, 2>& counter, int chunk) const {
    return first_[at_index(chunk)] + counter[at_index(chunk)]++;
  }
  void add(const std::deque<PipelinePass>::iterator& pass) {
    order_.push_back(*pass);
    put_off_.erase(pass);
  }

  std::array<int, 2> first_, forward_{}, backward_{};
  std::deque<PipelinePass> put_off_;
  std::vector<PipelinePass> order_;
};

/// ZB-H1 (arXiv 2401.10241, section 2.2 and figure 3): 1F1B, but stage s has the gradients of weights of s
/// micro-batches wait, so that every stage holds as many micro-batches as the first one.
std::vector<PipelinePass> zero_bubble_order(int stages, int stage, int micro_batches) {
  OrderBuilder order;
  const int ahead = std::min(stages - stage - 1, micro_batches);
  for (int m = 0; m < ahead; ++m) order.forward(0);
  for (int m = 0; m < micro_batches; ++m) {
    if (ahead + m < micro_batches) order.forward(0);
    order.inputs(0);
    if (order.waiting(0) > stage) order.weights(0);
  }
  while (order.waiting(0) > 0) order.weights(0);
  return std::move(order).take();
}

/// ZB-V (arXiv 2401.10241, section 6), pass by pass as PyTorch's ScheduleZBVZeroBubble has it. It is laid out for
/// 2 p − 1 micro-batches at least; those that there are not are left out.
std::vector<PipelinePass> zero_bubble_v_order(int stages, int stage, int micro_batches) {
  const int laid_out = std::max(2 * stages - 1, micro_batches);
  OrderBuilder order;
  const auto forward_and_backward_of_second = [&] {
    order.forward(1);
    order.inputs(1);
    order.weights(1);
  };
  const int at_first = 2 * (stages - stage) - 1;
  for (int m = 0; m < at_first; ++m) order.forward(0);
  for (int m = 0; m < stage; ++m) {
    order.forward(1);
    order.forward(0);
  }
  for (int m = 0; m < stages - stage; ++m) forward_and_backward_of_second();
  for (int done = at_first + stage, second = stages; second < laid_out; ++second) {
    if (done++ < laid_out) order.forward(0);
    order.inputs(0);
    order.weights(0);
    forward_and_backward_of_second();
  }
  for (int m = 0; m < stage; ++m) {
    order.inputs(0);
    order.inputs(1);
  }
  for (int m = 0; m < stages - stage; ++m) {
    order.inputs(0);
    order.weights(0);
  }
  for (const int chunk : {1, 0}) {
    while (order.waiting(chunk) > 0) order.weights(chunk);
  }
  std::vector<PipelinePass> passes = std::move(order).take();
  std::erase_if(passes, [&](const PipelinePass& pass) { return pass.micro_batch >= micro_batches; });
  return passes;
}

/// V-Half and V-Min (arXiv 2405.15362): when a micro-batch's forward passes and the first parts of its backward passes
/// begin on a stage, in passes (sail-sg/zero-bubble-pipeline-parallelism, scheduler/zbv_greedy.py: stable_pattern). The
/// next one's are six later. Gradients of weights fill the gaps.
std::vector<PipelinePass> repeated_order(bool half, int stages, int stage, int micro_batches) {
  constexpr int period = 6;
  const int odd = half ? (stages % 2 == 0 ? 3 : 0) : (stages % 3 == 0 ? 2 : 0);
  const std::array<int, 4> begins =
      half ? std::array{2 * stage, 3 * stages - stage - 2, 3 * stages + odd + 2 * stage - 1,
                        6 * stages + odd - stage - 2}
           : std::array{stage, 2 * stages - stage - 1, 2 * stages + odd + stage, 4 * stages + odd - stage - 1};
  OrderBuilder order;
  for (int time = 0, left = 4 * micro_batches; left > 0; ++time) {
    const int before = left;
    for (int kind = 0; kind < 4; ++kind) {
      const int since = time - begins[at_index(kind)];
      if (since < 0 || since % period != 0 || since / period >= micro_batches) continue;
      kind < 2 ? order.forward(kind) : order.inputs(3 - kind);
      --left;
    }
    if (left == before && order.waiting(0) + order.waiting(1) > 0) order.weights();
  }
  while (order.waiting(0) + order.waiting(1) > 0) order.weights();
  return std::move(order).take();
}

/// DualPipe (arXiv 2412.19437, section 3.2.1 and figure 5), pass by pass as DeepSeek's implementation has it, whose
/// eight steps these are. Stages from either end do the same, each beginning with what enters at its own end.
std::vector<PipelinePass> dualpipe_order(int stages, int stage, int micro_batches) {
  const int half = stages / 2, from_end = std::min(stage, stages - 1 - stage);
  const bool in_middle = from_end == half - 1;
  const int own = stage < half ? 0 : 1, other = 1 - own;
  OrderBuilder order(micro_batches / 2);
  for (int i = 0; i < 2 * (half - from_end - 1); ++i) order.forward(own);
  for (int i = 0; i < from_end + 1; ++i) {
    order.forward(own);
    order.forward(other);
  }
  for (int i = 0; i < half - from_end - 1; ++i) {
    order.inputs(other);
    order.weights();
    order.forward(other);
  }
  for (int i = 0; i < micro_batches / 2 - stages + from_end + 1; ++i) {
    order.forward(own, i > 0 || !in_middle ? PassKind::paired : PassKind::forward);
    order.backward(other);
    order.forward(other, PassKind::paired);
    order.backward(own);
  }
  for (int i = 0; i < half - from_end - 1; ++i) {
    order.backward(other);
    order.forward(other, PassKind::paired);
    order.backward(own);
  }
  // From the middle of these on, gradients of weights are put off.
  for (int pass = 0; pass < 2 * (from_end + 1); ++pass) {
    const int chunk = pass % 2 == 0 ? other : own;
    pass > from_end ? order.inputs(chunk) : order.backward(chunk);
  }
  for (int i = 0; i < half - from_end - 1; ++i) {
    order.weights();
    order.inputs(own);
  }
  for (int i = 0; i < from_end + 1; ++i) order.weights();
  return std::move(order).take();
}

}  // namespace

ChunkPlacement::ChunkPlacement(PipelineSchedule schedule, int stages, int interleave)
    : shape_(schedule == PipelineSchedule::dualpipe         ? Shape::mirrored
             : splits_backward(schedule) && interleave == 2 ? Shape::folded
                                                            : Shape::round_robin),
      stages_(stages),
      chunks_(shape_ == Shape::mirrored ? 2 : interleave),
      positions_(stages * interleave) {}

int ChunkPlacement::position(int stage, int chunk) const {
  if (chunk == 0) return stage;
  return shape_ == Shape::round_robin ? chunk * stages_ + stage : positions_ - 1 - stage;
}

std::optional<ChunkPlacement::Place> ChunkPlacement::at(int position, int chunk) const {
  if (position < 0 || position >= positions_) return std::nullopt;
  switch (shape_) {
    case Shape::round_robin:
      break;
    case Shape::folded:
      return position < stages_ ? Place{position, 0} : Place{positions_ - 1 - position, 1};
    case Shape::mirrored:
      return Place{chunk == 0 ? position : stages_ - 1 - position, chunk};
  }
  return Place{position % stages_, position / stages_};
}

std::vector<PipelinePass> pipeline_order(PipelineSchedule schedule, int stages, int stage, int interleave,
                                         int micro_batches) {
  if (schedule == PipelineSchedule::dualpipe) return dualpipe_order(stages, stage, micro_batches);
  const bool half = schedule == PipelineSchedule::v_half;
  if (half || schedule == PipelineSchedule::v_min) return repeated_order(half, stages, stage, micro_batches);
  if (schedule != PipelineSchedule::zero_bubble) {
    return alternating_order(schedule, stages, stage, interleave, micro_batches);
  }
  return interleave == 2 ? zero_bubble_v_order(stages, stage, micro_batches)
                         : zero_bubble_order(stages, stage, micro_batches);
}

std::vector<PipelinePass> last_gradients(const std::vector<PipelinePass>& order, int chunks) {
  std::vector<PipelinePass> last(at_index(chunks));
  for (const PipelinePass& pass : order) {
    if (pass.makes_weight_gradients()) last[at_index(pass.chunk)] = pass;
  }
  return last;
}

}  // namespace foretrain
