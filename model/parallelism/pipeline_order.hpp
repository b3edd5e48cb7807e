// Which parts of a model a pipeline's stages hold, and the order in which a stage works on its micro-batches.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "model/parallelism/plan.hpp"

namespace foretrain {

/// Placement of a model's chunks. Round robin: chunk k of the model on stage k % stages (arXiv 2104.04473, section
/// 2.2). ZB-V: two chunks a stage in the shape of a V, so that the last chunk is on the first stage. DualPipe: the
/// model's chunks from the first stage to the last and once more from the last to the first, for micro-batches that
/// enter there.
class ChunkPlacement {
 public:
  struct Place {
    int stage = 0;
    int chunk = 0;  ///< of the stage's
  };

  ChunkPlacement(PipelineSchedule schedule, int stages, int interleave);
  explicit ChunkPlacement(const Plan& plan) : ChunkPlacement(plan.schedule, plan.pipeline, plan.interleave) {}

  [[nodiscard]] int chunks() const { return chunks_; }
  /// The chunk's number in model order.
  [[nodiscard]] int position(int stage, int chunk) const;
  /// Places of a micro-batch's forward pass after and before this one; nothing at the model's ends.
  [[nodiscard]] std::optional<Place> next(int stage, int chunk) const { return at(position(stage, chunk) + 1, chunk); }
  [[nodiscard]] std::optional<Place> previous(int stage, int chunk) const {
    return at(position(stage, chunk) - 1, chunk);
  }
  /// Whether forward passes of a stage's chunk go to the stage before.
  [[nodiscard]] bool reversed(int chunk) const { return shape_ != Shape::round_robin && chunk == 1; }
  bool operator==(const ChunkPlacement&) const = default;
  /// The other stage that holds the same chunks, which are the other way round there; only with DualPipe.
  [[nodiscard]] std::optional<int> mirror(int stage) const {
    return shape_ == Shape::mirrored ? std::optional(stages_ - 1 - stage) : std::nullopt;
  }

 private:
  enum class Shape { round_robin, folded, mirrored };

  [[nodiscard]] std::optional<Place> at(int position, int chunk) const;

  Shape shape_;
  int stages_, chunks_, positions_;
};

/// Work of a stage on a micro-batch in one of its chunks.
enum class PassKind {
  forward,
  backward,  ///< gradients of inputs and of weights
  inputs,    ///< a backward pass in two parts: first what the stage before waits for,
  weights,   ///< later what the optimizer waits for
  paired     ///< a forward pass that runs together with the backward pass after it in the order
};
inline constexpr std::array pass_kinds = {PassKind::forward, PassKind::backward, PassKind::inputs, PassKind::weights,
                                          PassKind::paired};

/// A value for each kind of pass.
template <typename T>
struct PerPass {
  std::array<T, pass_kinds.size()> values = {};

  [[nodiscard]] T& operator[](PassKind kind) { return values[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const T& operator[](PassKind kind) const { return values[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] auto begin() { return values.begin(); }
  [[nodiscard]] auto end() { return values.end(); }
  [[nodiscard]] auto begin() const { return values.begin(); }
  [[nodiscard]] auto end() const { return values.end(); }
};

struct PipelinePass {
  PassKind kind = PassKind::forward;
  int chunk = 0;  ///< of the stage's
  int micro_batch = 0;

  [[nodiscard]] bool backward() const { return kind != PassKind::forward && kind != PassKind::paired; }
  [[nodiscard]] bool makes_weight_gradients() const { return backward() && kind != PassKind::inputs; }
};

/// The order of work of one stage. DualPipe's micro-batches are divided between the ends: those of the second half
/// enter at the last stage.
std::vector<PipelinePass> pipeline_order(PipelineSchedule schedule, int stages, int stage, int interleave,
                                         int micro_batches);

/// By chunk: the micro-batch whose pass is the last in `order` that makes gradients of weights, and that pass.
std::vector<PipelinePass> last_gradients(const std::vector<PipelinePass>& order, int chunks);

}  // namespace foretrain
