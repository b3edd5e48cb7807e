// Ranks that behave alike, of which the simulation needs one.
//
// Ranks, the groups they work in, the groups' flows and the links that these cross are vertices of a graph. A rank is
// joined to its groups, a group to its flows, a flow to its links. The classes are those of the coarsest equitable
// partition of that graph (equitable_partition.hpp): equal vertices have equally many neighbours of each class. Ranks
// of a class then start and end everything at the same moments. Max–min fair rates are equal within a class of flows,
// and a collective ends for all ranks of a group at once. A symmetric cluster has one class of ranks a stage; a slow
// card in one node makes just those classes that it needs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/base/shared_vector.hpp"
#include "model/collectives/contention.hpp"
#include "model/hardware/topology.hpp"
#include "model/parallelism/layout.hpp"

namespace foretrain {

/// A transfer as the partition sees it.
struct GroupedTransfer {
  /// A collective that some groups run side by side. No flow joins two groups.
  struct Part {
    const LoweredCollective* lowered = nullptr;
    std::span<const int> groups;  ///< indices
  };
  int grouping = 0;          ///< equal for transfers of the same groups
  int model = 0, shift = 0;  ///< the first grouping that becomes this one so many ranks further on: itself at least
  const RankGroups* groups = nullptr;
  std::vector<Part> parts;
  /// Equal for transfers that put the same flows on the links of such groups, up to a factor; nothing: not known.
  std::optional<std::uint64_t> pattern = std::nullopt;
};

/// Whether ranks that behave alike share a class: the same results, sooner. of_stages: all ranks of a stage share one
/// where each transfer takes them equally long, whatever it meets.
enum class Symmetry { ignored, used, of_stages };

struct RankClasses {
  /// A class of ranks; one of them stands for all.
  struct RankClass {
    int stage = 0;
    int first_rank = 0;
    int ranks = 1;
    double speed = 1.0;  ///< of its devices: 0.8 takes 1/0.8 of the time for every kernel
  };
  std::vector<RankClass> rank_classes;           ///< by stage, then by their first ranks
  SharedVector<int> class_of_rank;               ///< by GPU of the cluster; -1: not used
  std::vector<std::vector<int>> class_of_group;  ///< by grouping; classes of one grouping are numbered from 0
  /// By grouping and class: those of its groups' ranks, ascending.
  std::vector<std::vector<std::vector<int>>> rank_classes_of;

  /// One class a stage.
  static RankClasses one_per_stage(int stages, const std::vector<int>& stage_of_rank);
};

/// `stage_of_rank` (-1: not used), `speed_of_rank` and the kinds of their nodes tell ranks apart from the beginning.
/// If ends do not determine the group of a flow (between two servers, forwarded over a rail), all groups of the
/// transfer are one class.
RankClasses classify(const std::vector<GroupedTransfer>& transfers, const std::vector<int>& stage_of_rank,
                     const std::vector<double>& speed_of_rank, const Topology& topology,
                     std::span<const BackgroundFlow> background, Symmetry symmetry = Symmetry::used);

/// By rank: the group that it belongs to; -1 for none.
std::vector<int> group_of_rank(const RankGroups& groups, int ranks);
/// The group that carries the flow, by the ends that are GPUs; -1 where neither is, or where they are of two groups, as
/// where one forwards a message over the rail of another.
int group_of_flow(const Flow& flow, const std::vector<int>& group_of_rank);

}  // namespace foretrain
