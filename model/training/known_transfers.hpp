// What this process knows of transfers from steps before: collectives that were lowered for the same groups of ranks on
// the same network, and which classes of ranks these make. A sweep's points differ in few of them.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/base/reads.hpp"
#include "model/parallelism/layout.hpp"
#include "model/training/rank_classes.hpp"
#include "model/training/step.hpp"

namespace foretrain {

/// Which groups are alike: equally many ranks, on the same kinds of nodes, of which the same share a node and are
/// equally far from the next.
std::vector<std::vector<int>> alike_groups(const RankGroups& groups, const Topology& topology);

/// What has been lowered for the groups of one layout on one network without background traffic.
class KnownTransfers {
 public:
  /// Everything beside the groups that decides what a transfer of one kind on one stage does.
  struct Key {
    GroupKind kind;
    int stage = 0;
    int copied_from = -1;  ///< the stage whose transfer was shifted
    bool back = false;
    double pieces = 1.0;
    CollectiveOperation operation;
    SyncAlgorithm algorithm;
    Bytes size;
    int servers = 1;
    ServerPlacement placement;
    std::vector<int> levels;
    TokenRouting tokens;
    auto operator<=>(const Key&) const = default;
  };
  struct Transfer {
    std::vector<Step::Transfer::Part> parts;  ///< without their lanes
    /// A hash of its flows' ends, of which of them are equally large and heavy, and of their algorithms; nothing where
    /// some flow is not between two GPUs.
    std::optional<std::uint64_t> pattern;
    ReadSet reads;  ///< constants that it rests on
  };

  /// Those of a layout on a network; a memo of the process, keyed by both and by the library's constants.
  static std::shared_ptr<KnownTransfers> on(const Topology& topology, const RankLayout& layout,
                                            const CollectiveConstants& constants);

  KnownTransfers(const Topology& topology, const RankLayout& layout);
  ~KnownTransfers();
  KnownTransfers(const KnownTransfers&) = delete;
  KnownTransfers& operator=(const KnownTransfers&) = delete;

  /// Null where it is not known; valid until the next add().
  [[nodiscard]] const Transfer* find(const Key& key) const;
  /// `lower` makes the parts; what it reads is remembered with them.
  const Transfer& add(const Key& key, const std::function<std::vector<Step::Transfer::Part>()>& lower,
                      const Topology& topology);
  struct Groups {
    RankGroups ranks;
    SharedVector<std::vector<int>> alike;  ///< as alike_groups() says
    double channel_share = 1.0;            ///< of the first one
  };
  const Groups& groups(GroupKind kind, int stage, const Topology& topology);
  /// Time of the gradients' norm, and the constants that it rests on.
  struct Norm {
    Seconds time;
    ReadSet reads;
  };
  std::optional<Norm> norm;

  /// Everything that decides whether ranks of a stage differ, and whether its passes are cut. `step`: which transfers
  /// there are, by their kinds, stages and patterns, and in which way gradients move beside the passes.
  struct Shape {
    RankLayout layout;
    std::vector<std::int64_t> network;
    std::vector<std::uint64_t> step;
    bool operator==(const Shape&) const = default;
  };
  /// Nothing where the network's nodes differ.
  [[nodiscard]] std::optional<Shape> shape(std::vector<std::uint64_t> step) const;
  /// What comes of that. No lanes: stages are whole, no transfer is divided and no pass is cut.
  struct Division {
    RankClasses classes;
    std::vector<Step::Lane::Cut> cuts;  ///< by stage, as traffic alone says
  };
  /// Null where steps of this shape have not been divided before; valid until the next note_division().
  static const Division* division_of(const Shape& shape);
  static void note_division(Shape shape, Division division);

 private:
  RankLayout layout_;
  std::vector<std::int64_t> network_;  ///< empty where its nodes differ
  std::map<Key, Transfer> transfers_;
  std::map<std::pair<GroupKind, int>, Groups> groups_;
  std::size_t flows_ = 0;  ///< of its transfers
};

}  // namespace foretrain
