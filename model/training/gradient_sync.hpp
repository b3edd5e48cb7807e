// Where gradients are synchronised: buckets beside the backward pass, or gathered and scattered units under ZeRO-3.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "model/training/layer_cost.hpp"

namespace foretrain {

/// Lowers gradient collectives of one stage into Step::transfers; equal ones are shared.
class GradientSync {
 public:
  /// A share of a layer's backward pass, from one moment to another between 0 and 1.
  struct LayerPart {
    const Layer* layer = nullptr;
    double from = 0.0, to = 1.0;
  };

  GradientSync(const Scenario& scenario, const Topology& topology, const LayerPricer& pricer, Step& step);

  /// Fills chunk.buckets: gradients in the order in which the backward pass of `layers` (model order, with their costs)
  /// finishes them, cut at plan.sync.bucket. Where there are many, neighbours are merged: they then stand for several
  /// collectives one after the other, which keeps the time and coarsens the moments at which they start. Layer by layer
  /// all are merged evenly, into at most `most_buckets`; tensor by tensor a bucket takes along at most one of
  /// `most_buckets` of those still to come, so that the last ones, which nothing hides, stay as they are.
  void add_buckets(int stage, const std::vector<std::pair<const Layer*, LayerCost>>& layers, Step::Chunk& chunk);

  /// Fills chunk.units: one unit a layer; the layers outside the repeated blocks (embedding, head) form the root, whose
  /// weights stay gathered from the beginning of the forward pass to the end of the backward pass.
  void add_sharded_units(int stage, const std::vector<std::pair<const Layer*, LayerCost>>& layers, Step::Chunk& chunk);

  /// All-gather of a stage's updated weights (ZeRO-1 and 2).
  int parameter_gather(int stage, double parameters);

  static constexpr std::size_t most_buckets = 16;

 private:
  /// Gradients that become ready together.
  struct Ready {
    Segment backward;
    Bytes size;
    GradientSet gradients;
    std::vector<LayerPart> layers = {};  ///< only where recipes are kept
  };
  [[nodiscard]] std::vector<Ready> parts_of(const std::vector<std::pair<const Layer*, LayerCost>>& layers) const;
  [[nodiscard]] double pieces_of(const Ready& part) const;
  [[nodiscard]] Seconds kernel_time(const std::vector<Operator>& ops) const;
  [[nodiscard]] std::vector<Operator> copies_into_bucket(Bytes gradients) const;
  [[nodiscard]] std::vector<Operator> operators_of(const LayerPart& part) const;
  void synchronise(int stage, const GradientSet& gradients, double pieces, GradientBucket& bucket);
  int transfer(int stage, CollectiveOperation operation, Bytes size, double pieces, const char* name);

  const Scenario& scenario_;
  const Topology& topology_;
  const LayerPricer& pricer_;
  Step& step_;
  RankLayout layout_;
  int replicas_;
  Bytes weight_, gradient_;
  std::map<std::tuple<int, CollectiveOperation, double, double>, int> known_;
};

}  // namespace foretrain
