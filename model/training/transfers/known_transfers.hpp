// Cached transfers of earlier steps of this process: collectives that were lowered for the same groups of ranks on
// the same network, and which classes of ranks these make. A sweep's points differ in few of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/base/hash.hpp"
#include "model/base/reads.hpp"
#include "model/parallelism/layout.hpp"
#include "model/training/step/rank_classes.hpp"
#include "model/training/step/step.hpp"

namespace foretrain {

/// Key of a transfer of a step, besides its groups' layout.
struct TransferKey {
  GroupKind kind;
  int stage = 0;
  CollectiveOperation operation;
  Bytes size;
  double pieces = 1.0;
  bool back = false;
  TokenRouting tokens = {};
  Seconds overhead = {};  ///< of a message between stages
  SyncAlgorithm algorithm = SyncAlgorithm::automatic;
  int servers = 1;
  ServerPlacement placement = ServerPlacement::cpu;
  std::vector<int> levels = {};
  int copied_from = -1;  ///< the stage whose transfer was shifted
  bool operator==(const TransferKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const {
    return hash_of(kind, stage, back, operation, algorithm, size, pieces, overhead);
  }
};

/// Lowered collectives for the groups of one layout on one network, beside the same background traffic.
class KnownTransfers {
 public:
  struct Transfer {
    Transfer(std::vector<Step::Transfer::Part> own, const Topology& topology);
    /// The transfer of GPUs `ranks` further on, for transfers with a pattern.
    [[nodiscard]] Transfer shifted(int ranks) const;

    std::vector<Step::Transfer::Part> parts;  ///< without their rank classes
    /// The number of its pattern: its flows' ends, which of them are equally large and heavy, and their algorithms;
    /// nothing where some flow is not between two GPUs.
    std::optional<std::uint64_t> pattern;
    int shift = 0;  ///< of the GPUs against the pattern's
    std::size_t flows;
    ReadSet reads;  ///< the constants that it used
  };

  /// Transfers of a layout on a network that stand for a scenario's, by the library's constants; the session caches
  /// them.
  static std::shared_ptr<KnownTransfers> of(const Scenario& scenario, const Topology& topology,
                                            const RankLayout& layout);

  KnownTransfers(const Topology& topology, const RankLayout& layout, bool undisturbed);
  /// `lower` makes it where it is not known; what that reads is cached with it.
  [[nodiscard]] std::shared_ptr<const Transfer> transfer(const TransferKey& key,
                                                         const std::function<Transfer()>& lower) const;
  /// Ranks as long as their stages are whole.
  [[nodiscard]] const RankClasses& whole() const { return whole_; }
  [[nodiscard]] std::size_t expected_bytes() const;
  struct Groups {
    GroupKind kind;
    int stage = 0;
    RankGroups ranks;
    /// Indices of groups of equally many ranks, on the same kinds of nodes, of which the same share a node and are
    /// equally far from the next.
    SharedVector<std::vector<int>> alike;
    double channel_share = 1.0;  ///< of the first one
    /// The first stage whose groups become these when every rank is shifted by `shift`, whole nodes; else its own.
    int model_stage = 0;
    int shift = 0;
  };
  const Groups& groups(GroupKind kind, int stage, const Topology& topology);
  /// Time of the gradients' norm, and the constants that it used; none before the first request.
  std::optional<std::pair<Seconds, ReadSet>> norm;
  /// The routes inside a node and between two of them, and which links are equally wide; empty where nodes differ, or
  /// others use the network.
  [[nodiscard]] const std::vector<std::int64_t>& network() const { return network_; }

 private:
  RankLayout layout_;
  RankClasses whole_;
  bool undisturbed_;
  std::vector<std::int64_t> network_;
  std::map<std::pair<GroupKind, int>, Groups> groups_;
  std::uint64_t number_;  ///< of the session's KnownTransfers
};

/// Division of a step's ranks into classes, and their contention.
struct Division {
  std::optional<RankClasses> classes;            ///< none: stages are whole, and no transfer is divided
  std::vector<Step::RankClass::SplitMode> cuts;  ///< by stage, as traffic alone says
};

/// Everything that decides it. `step`: which transfers there are, by their kinds, stages and patterns, and in which way
/// gradients move beside the passes.
struct DivisionKey {
  using Value = const Division;
  RankLayout layout;
  std::vector<std::int64_t> network;
  std::vector<std::uint64_t> step;

  bool operator==(const DivisionKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(layout.hash(), network.size(), step); }
  [[nodiscard]] std::size_t bytes(const Division& division) const {
    return 20'000 + (division.classes ? 20 * division.classes->class_of_rank.size() : 0);
  }
};

}  // namespace foretrain
