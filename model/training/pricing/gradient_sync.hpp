// Synchronisation of gradients: buckets beside the backward pass, or gathered and scattered units under ZeRO-3.
#pragma once

#include <vector>

#include "model/training/pricing/layer_cost.hpp"

namespace foretrain {

class GradientSync {
 public:
  struct Place {
    int stage = 0, rank_class = 0;
    double speed = 1.0;  ///< of the rank class's devices
  };
  /// A share of a layer's backward pass, from one moment to another between 0 and 1.
  struct LayerPart {
    const PricedLayer* layer = nullptr;
    double from = 0.0, to = 1.0;
  };

  GradientSync(const Scenario& scenario, const LayerPricer& pricer, TransferTable& transfers);

  /// Fills chunk.buckets: gradients in the order in which the backward pass of `layers` (model order, with their costs)
  /// finishes them, cut at plan.sync.bucket. Where there are many, neighbours are merged: they then stand for several
  /// collectives one after the other, which keeps the time and coarsens the moments at which they start. A bucket takes
  /// along one of `buckets_for_one` of those still to come, so that the last ones, which nothing hides, stay as they
  /// are.
  void add_buckets(const Place& place, const std::vector<PricedLayer>& layers, Step::Chunk& chunk);

  /// Fills chunk.units: one unit a layer. The layers outside the repeated blocks (embedding, head) form the root, whose
  /// weights stay gathered from the beginning of the forward pass to the end of the backward pass.
  void add_sharded_units(const Place& place, const std::vector<PricedLayer>& layers, Step::Chunk& chunk);

  /// Fills chunk.gathers: what ZeRO-1 and 2 updated comes back in the buckets of the gradients, those of the first
  /// layers first; the forward pass is known. Beside passes the first eight come one by one. Then neighbours are
  /// merged, one in eight of those before: no layer waits for weights that come back more than that share later than
  /// its own.
  void add_gathers(const Place& place, const std::vector<PricedLayer>& layers, Step::Chunk& chunk);

  static constexpr std::size_t buckets_for_one = 16, gathers_before_one_more = 8;

 private:
  /// Gradients that become ready together.
  struct Bucket {
    TimeBreakdown backward;
    Bytes size;
    GradientSet gradients, experts;      ///< experts: where expert parallelism spreads them
    double collectives = 0.0;            ///< one after the other, that carry them
    std::vector<LayerPart> layers = {};  ///< in the order of the backward pass
    Bucket& operator+=(const Bucket& later);
  };
  [[nodiscard]] std::vector<Bucket> parts_of(const std::vector<PricedLayer>& layers) const;
  void add_gradients(double elements, double in_experts, std::vector<WeightMatrix> matrices, Bucket& ready) const;
  [[nodiscard]] Seconds kernel_time(const std::vector<Operator>& ops) const;
  [[nodiscard]] std::vector<Operator> copies_into_bucket(Bytes gradients) const;
  [[nodiscard]] std::vector<Operator> operators_of(const LayerPart& part) const;
  /// `pieces` collectives of equal size, one after the other, that carry `size` together.
  int transfer_of(int stage, GroupKind kind, CollectiveOperation operation, Bytes size, double pieces,
                  const char* name) const;
  /// The ranks that hold the same parameters, and how ZeRO divides these over them: in shards that several hold alike
  /// (Plan::shard), else in one for each rank.
  struct ReplicaGroup {
    GroupKind all, shards, copies;
    int replicas = 1, in_shards = 1, of_shard = 1;
  };
  [[nodiscard]] double messages_of(const GradientSet& weights, const GradientSet& of_chunk, double buckets,
                                   const ReplicaGroup& group) const;
  static void set_forward(const std::vector<LayerPart>& parts, const TimeBreakdown& whole, PassCost& forward);
  void synchronise(const Place& place, const ReplicaGroup& group, const GradientSet& gradients, double collectives,
                   GradientBucket& bucket) const;
  [[nodiscard]] Seconds concat_time(double parameters) const;
  Seconds scatter_unit(const Place& place, double parameters, ShardedUnit& unit) const;
  /// A layer's, of so many trained and frozen parameters.
  [[nodiscard]] ShardedUnit sharded_unit(const Place& place, const PricedLayer& priced, double parameters,
                                         double frozen) const;

  const Scenario& scenario_;
  const LayerPricer& pricer_;
  TransferTable& transfers_;
  ReplicaGroup replica_group_, expert_replica_group_;
  Bytes weight_, gathered_weight_, gradient_;
};

}  // namespace foretrain
