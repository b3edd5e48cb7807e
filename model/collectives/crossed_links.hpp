// Which links flows cross, numbered from zero as flows come to cross them.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "model/collectives/collective.hpp"

namespace foretrain {

class CrossedLinks {
 public:
  /// The topology must outlive it.
  explicit CrossedLinks(const Topology& topology);

  /// The numbers of what the flow crosses, valid until the next call. A connection that transport or library hold back
  /// crosses one link more, which flows between the same ends share. Messages that hold up a card cross one for each
  /// card, which carries less by them: messages of one size share it; beside others their bytes alone count. Throws
  /// ImpossiblePlan where nothing can move.
  const std::vector<std::int32_t>& of(const Flow& flow);
  /// The same with a limit that no other flow shares.
  const std::vector<std::int32_t>& of_background(const Flow& flow);
  [[nodiscard]] const std::vector<BytesPerSecond>& bandwidth() const { return bandwidth_; }

 private:
  BytesPerSecond find(const Flow& flow);
  std::int32_t new_link(BytesPerSecond bandwidth);

  const Topology& topology_;
  std::vector<BytesPerSecond> bandwidth_;
  std::vector<std::int32_t> number_;  ///< of every link of the topology; -1 where no flow crosses it
  std::map<std::tuple<EndpointId, EndpointId, BytesPerSecond>, std::int32_t> connection_limit_;
  std::map<std::pair<LinkId, double>, std::int32_t> held_cards_;  ///< by what a byte takes, of the card's own time
  std::vector<LinkId> route_;
  std::vector<std::int32_t> crossed_;
};

}  // namespace foretrain
