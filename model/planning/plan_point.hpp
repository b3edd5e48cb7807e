// One plan of those that are searched, as the values that its keys take.
#pragma once

#include <array>
#include <bitset>
#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "model/parallelism/plan.hpp"
#include "model/workload/training.hpp"

namespace foretrain {

enum class PlanDimension {
  tensor,
  context,
  expert,
  pipeline,
  data,
  order,
  micro_batch,
  recompute,
  sequence_parallel,
  schedule,
  interleave,
  zero,
  offload,
  algorithm,
  servers,
  server_placement,
  bucket,
  overlap
};
inline constexpr std::size_t plan_dimension_count = 18;

/// "plan.tensor", "workload.train.micro_batch", …
std::string_view key_of(PlanDimension dimension);

/// Features that frameworks do not run by default; a search tries them only if allowed: state in host memory.
/// Pipeline schedules beside 1F1B and interleaved ones; parameter servers; algorithms that NCCL does not pick itself.
enum class PlanExtra { offload, schedules, servers, algorithms };

/// Dimensions that a search chooses; the scenario sets the others. And the extras that it may choose.
class PlanDimensions {
 public:
  static PlanDimensions all();
  void allow(PlanExtra extra, bool allowed = true) { extras_[static_cast<std::size_t>(extra)] = allowed; }
  void allow_all(bool allowed = true) { allowed ? extras_.set() : extras_.reset(); }
  [[nodiscard]] bool allows(PlanExtra extra) const { return extras_[static_cast<std::size_t>(extra)]; }
  [[nodiscard]] bool has(PlanDimension dimension) const { return set_[static_cast<std::size_t>(dimension)]; }
  void set(PlanDimension dimension, bool chosen = true) { set_[static_cast<std::size_t>(dimension)] = chosen; }
  [[nodiscard]] bool any() const { return set_.any(); }

 private:
  std::bitset<plan_dimension_count> set_;
  std::bitset<4> extras_;
};

/// Words that stand for lists and sizes: a point holds a place among them, or −1 for what the scenario states.
inline constexpr std::array<std::string_view, 2> plan_orders = {"tensor-context-expert-data-pipeline",
                                                                "tensor-context-expert-pipeline-data"};
inline constexpr std::array<std::string_view, 5> plan_offloads = {"none", "optimizer", "[optimizer, parameters]",
                                                                  "activations", "[optimizer, activations]"};
inline constexpr std::array<std::string_view, 4> plan_buckets = {"auto", "25 MB", "100 MB", "400 MB"};
inline constexpr std::array plan_algorithms = {SyncAlgorithm::automatic, SyncAlgorithm::ring,
                                               SyncAlgorithm::double_tree, SyncAlgorithm::hierarchical};
/// `gpu` is left out: servers stand there as `colocated` ones do.
inline constexpr std::array plan_placements = {ServerPlacement::cpu, ServerPlacement::colocated,
                                               ServerPlacement::dedicated};
/// Offload of plan_offloads[number].
Plan::Offload offload_of(int number);

/// Plain values: points are sent between processes as they are, and ordered by them where nothing else tells two apart.
struct PlanPoint {
  int tensor = 1, context = 1, expert = 1, pipeline = 1, data = 1, order = -1;
  int micro_batch = 1;
  Recompute recompute = Recompute::none;
  bool sequence_parallel = false;
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int interleave = 1;
  int zero = 0, offload = -1;
  SyncAlgorithm algorithm = SyncAlgorithm::automatic;
  int bucket = -1;
  bool overlap = true;
  int servers = 0;  ///< parameter servers; 0 where replicas exchange gradients among themselves
  ServerPlacement placement = ServerPlacement::cpu;

  [[nodiscard]] bool dedicated() const { return servers > 0 && placement == ServerPlacement::dedicated; }
  /// Whether every rank holds the whole model.
  [[nodiscard]] bool undivided() const { return tensor * context * expert * pipeline == 1; }
  /// Whether the gradients go to servers key by key, as those of data parallelism alone; else bucket by bucket.
  [[nodiscard]] bool pushes_keys() const { return servers > 0 && (data > 1 || dedicated()) && undivided(); }
  /// Whether ranks and machines that are servers alone are those of the layout.
  [[nodiscard]] bool is_of(const PlanPoint& layout) const {
    const auto lies = [](const PlanPoint& one) {
      return std::array{
          one.tensor, one.context, one.expert, one.pipeline, one.data, one.order, one.dedicated() ? one.servers : 0};
    };
    return lies(*this) == lies(layout);
  }
  auto operator<=>(const PlanPoint&) const = default;
};

/// "KEY=VALUE" of each chosen dimension, as `--set` takes them.
std::vector<std::string> overrides_of(const PlanPoint& point, const PlanDimensions& chosen);

std::vector<PlanExtra> extras_of(const PlanPoint& point);
/// Whether frameworks run it by default.
inline bool is_extra(PipelineSchedule schedule) {
  return schedule != PipelineSchedule::one_forward_one_backward && schedule != PipelineSchedule::interleaved;
}

/// "tensor 8, pipeline 8, data 16, …": what differs from a plan without any parallelism.
std::string describe(const PlanPoint& point);

}  // namespace foretrain
