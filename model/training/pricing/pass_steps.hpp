// Steps of one layout's plans as their passes and their update alone, for searches that bound many of them: no
// buckets, no messages between stages. What layers take is priced once for all plans that price them alike.
#pragma once

#include <compare>
#include <map>
#include <memory>

#include "model/training/pricing/chunk_builder.hpp"

namespace foretrain {

class PassSteps {
 public:
  /// `scenario`: whose plan and training may change from one step to the next, but not where ranks lie.
  PassSteps(const Scenario& scenario, const Topology& topology);

  /// The step of the scenario as it is now, with a lower bound of each pass and no update. Equal inner stages share a
  /// rank class. Layers are priced on the ranks of the first; their collectives take the least time of any group of any
  /// stage. `model`: the scenario's, the same object for the same model.
  [[nodiscard]] Step step(const Model& model);
  /// Kernels of all layers' passes, with a micro-batch.
  [[nodiscard]] Seconds kernels(const Model& model);

 private:
  /// Values that determine the prices of layers and their collectives.
  struct Key {
    const Model* model = nullptr;
    Recompute recompute = Recompute::none;
    ExpertDispatch dispatch = ExpertDispatch::all_to_all;
    bool sharded = false, copied = false, gathered_again = false;  ///< weights, by ZeRO-3
    Sync::Accumulation accumulation = Sync::Accumulation::fused;
    bool divides_gradients = false;
    Precision gradient_precision = Precision::fp32;
    bool tensor_overlap = false, hides_exchanges = false, waits_for_slowest = true, single_process = false;
    auto operator<=>(const Key&) const = default;
  };
  [[nodiscard]] Key key_of(const Model& model) const;
  /// The nodes that stand for all.
  struct Network {
    Network(const Scenario& scenario, const Topology& topology);
    std::vector<Step::Transfer> sent;  ///< filled by the table
    TransferTable transfers;
    std::map<Key, std::unique_ptr<ChunkBuilder>> builders;
  };
  [[nodiscard]] Network& network();
  ChunkBuilder& builder(const Model& model, Network& network);
  /// By group of layers.
  const std::vector<LayerCost>& without_recomputation(const Model& model, const LayerPricer& pricer);
  static void keep_transfers(Step& step, const TransferTable& transfers);

  const Scenario& scenario_;
  const Topology& topology_;
  std::map<int, Network> networks_;               ///< by the replicas that stand for all, as the plan says
  std::map<Key, std::vector<LayerCost>> prices_;  ///< without recomputation
};

}  // namespace foretrain
