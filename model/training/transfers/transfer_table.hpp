// Transfers of a step. In: groups of ranks, an operation, bytes. Out: transfers of the step, each lowered once for all
// groups that carry it out side by side, with its time alone and beside the others that begin with it.
//
// Invariants: two transfers of the same groups, operation and bytes are one; parts of a transfer are the classes of its
// groups; what a session remembers (known_transfers.hpp) changes no digit. Times here meet nothing but the transfer
// itself and the background; what meets besides is found when the graph runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/base/number.hpp"
#include "model/parallelism/layout.hpp"
#include "model/training/step/rank_classes.hpp"
#include "model/training/step/step.hpp"
#include "model/training/transfers/known_transfers.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// Nodes on which transfers are lowered: all, or, if three of each stage stand for all, these.
enum class Extent { whole, few_nodes };
/// Number of data-parallel replicas that stand for all in communication.
int replicas_that_stand_for_all(const Scenario& scenario, const Topology& topology);
RankLayout layout_on(const Scenario& scenario, const Topology& topology, Extent extent);
/// The nodes that the layout has ranks on.
Topology topology_of(const RankLayout& layout, const Scenario& scenario, const Topology& whole);

/// Fills Step::transfers; equal ones are shared. Until the ranks' classes are known, a stage's ranks are one class.
class TransferTable {
 public:
  TransferTable(const Scenario& scenario, const Topology& topology, std::vector<Step::Transfer>& transfers,
                Extent extent = Extent::whole);

  /// `pieces` collectives of equal size, one after the other; the call names no groups: all of a kind carry it out.
  int collective(int stage, GroupKind kind, const CollectiveCall& call, double pieces, const char* name,
                 RecipePointer recipe);
  /// Activations from a stage to the next, or their gradients back: each tensor-parallel rank sends its share to its
  /// counterpart.
  int pipeline_p2p(int stage, bool back, Bytes activation, Seconds overhead);

  /// The same transfer of another stage's groups; -1 where these are not its groups some nodes further on.
  int repeated(int transfer, int stage);

  /// From now on, time() is what no group of any stage takes less than, whichever stage a transfer is named for.
  void take_least();
  /// Whether all transfers take all groups of all stages the same, so that the least is exact.
  [[nodiscard]] bool is_exact() const { return exact_; }
  /// Time of a rank class for it, with only the transfer itself on the links.
  [[nodiscard]] Seconds time(int transfer, int rank_class) const;
  [[nodiscard]] double slowdown(int transfer) const { return transfers_[at_index(transfer)].slowdown; }

  /// The nodes on which everything moves, and who is where on these.
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const RankLayout& layout() const { return layout_; }
  /// Each of its replicas stands for so many.
  [[nodiscard]] double stands_for() const { return number(scenario_.plan.data) / layout_.data(); }
  /// Time of the gradients' norm: one number from every rank.
  [[nodiscard]] Seconds norm_time() const;

  /// Ranks as long as their stages are whole.
  [[nodiscard]] const RankClasses& whole() const { return shared_->whole(); }
  /// All groups, and what tells their ranks apart, for the classes of ranks.
  [[nodiscard]] std::vector<GroupedTransfer> grouped() const;
  /// Divides every transfer by the classes of its groups.
  void divide(const RankClasses& classes);
  /// Everything that decides whether the ranks' classes are whole stages, no transfer is divided and no pass is cut;
  /// nothing where it is not known how to tell.
  [[nodiscard]] std::optional<DivisionKey> division_key() const;
  /// Whether some transfer has several parts.
  [[nodiscard]] bool divided() const;
  /// By rank class: those that have collectives inside layers with it, itself among them; empty where it is alone.
  [[nodiscard]] std::vector<std::vector<int>> lockstep_classes(std::size_t rank_classes) const;
  /// By stage: which passes have collectives inside layers that may meet other traffic. Two transfers may meet where
  /// they share a link and the ranks of both are not the same, or where one belongs to gradients and the other does
  /// not. On one rank class gradients cannot start before the first pass that makes them, and gathered weights are back
  /// before the end of the first forward pass that needs them.
  [[nodiscard]] std::vector<Step::RankClass::SplitMode> meetings() const;

 private:
  using Groups = KnownTransfers::Groups;
  struct Entry {
    int grouping = 0;
    TransferKey key;
    std::shared_ptr<const KnownTransfers::Transfer> lowered;
    SharedVector<std::vector<int>> groups;  ///< by part
  };

  /// Transfers that differ from the others of their groups in more than sizes.
  [[nodiscard]] std::vector<std::size_t> distinct() const;
  /// The number of such groups.
  int grouping(GroupKind kind, int stage);
  /// As in CollectiveCall.
  [[nodiscard]] int ranks_of(const Groups& groups) const;
  [[nodiscard]] const Groups& groups_of(int transfer) const {
    return *groupings_[at_index(entries_[at_index(transfer)].grouping)];
  }
  /// The same transfer of a stage before, whose groups lie as these, so many ranks back; it may cross no host memory,
  /// whose cards depend on the node.
  struct Model {
    int stage = 0, shift = 0;
    const KnownTransfers::Transfer* lowered = nullptr;
  };
  [[nodiscard]] std::optional<Model> model_of(TransferKey key) const;
  using Lower = std::function<KnownTransfers::Transfer(const Groups&)>;
  /// A new one: its model's on its groups' own links, else what `lower` makes for them.
  int add(const TransferKey& key, std::string name, RecipePointer recipe, const Lower& lower);
  /// The call's, or that of the message of a hop.
  int transfer(const TransferKey& key, const CollectiveCall& call, std::string name, RecipePointer recipe);
  [[nodiscard]] LoweredCollective lower_call(const TransferKey& key, const CollectiveCall& call) const;
  [[nodiscard]] LoweredCollective message_of(const TransferKey& key, const CollectiveCall& pairs) const;
  void note_least(int named, TransferKey key, const CollectiveCall& call);
  [[nodiscard]] Seconds time_of_norm() const;
  /// The least that a group of the transfer takes while no other moves.
  [[nodiscard]] Seconds least_of_groups(int transfer) const;

  const Scenario& scenario_;
  RankLayout layout_;
  Topology topology_;
  std::shared_ptr<KnownTransfers> shared_;
  std::vector<Step::Transfer>& transfers_;
  std::vector<Entry> entries_;  ///< of each transfer
  std::vector<const Groups*> groupings_;
  struct HashOfKey {
    std::size_t operator()(const TransferKey& key) const { return key.hash(); }
  };
  std::unordered_map<TransferKey, int, HashOfKey> known_;
  bool takes_least_ = false, stages_lie_alike_ = false, exact_ = true;
  std::map<int, Seconds> least_;  ///< by transfer, where the least is taken
};

/// Transfers that run beside kernels.
class OverlapCost {
 public:
  OverlapCost(const TransferTable& table, int rank_class) : table_(&table), rank_class_(rank_class) {}
  /// -1 is none.
  void add(int transfer);
  [[nodiscard]] Seconds time() const { return time_; }
  /// Slowdown of kernels that overlap the transfers for so long.
  [[nodiscard]] Seconds cost(Seconds hidden) const;

 private:
  const TransferTable* table_;
  int rank_class_;
  Seconds time_, cost_;  ///< `cost_`: with all of them hidden
};

}  // namespace foretrain
