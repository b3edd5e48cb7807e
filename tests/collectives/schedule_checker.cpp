#include "tests/collectives/schedule_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace foretrain::test {

namespace {

class Checker {
 public:
  Checker(const Schedule& schedule, CollectiveOperation operation)
      : schedule_(schedule),
        operation_(operation),
        participants_(schedule.ranks + schedule.servers),
        counts_(cells() * static_cast<std::size_t>(schedule.ranks), 0),
        use_(cells()) {
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
        if (holds_at_start(rank, chunk)) counts(rank, chunk)[rank] = 1;
      }
    }
  }

  std::string run() {
    for (int phase = 0; phase < schedule_.phases; ++phase) {
      const Phase transfers = schedule_.phase(phase);
      std::string problem = find_hazard(transfers);
      if (!problem.empty()) return fmt::format("phase {}: {}", phase, problem);
      // Without hazards no transfer reads what another one writes, so their order does not matter.
      for (const Transfer& transfer : transfers) apply(transfer);
    }
    return find_wrong_result();
  }

 private:
  /// Uses of a cell by the transfers of the current phase (one chunk at one participant).
  struct Use {
    bool read = false, reduced_into = false, copied_into = false;
  };

  std::size_t cells() const {
    return static_cast<std::size_t>(schedule_.ranks + schedule_.servers) * static_cast<std::size_t>(schedule_.chunks);
  }
  std::size_t cell(int participant, int chunk) const {
    return static_cast<std::size_t>(participant) * static_cast<std::size_t>(schedule_.chunks) +
           static_cast<std::size_t>(chunk);
  }
  std::uint16_t* counts(int participant, int chunk) {
    return counts_.data() + cell(participant, chunk) * static_cast<std::size_t>(schedule_.ranks);
  }
  /// The rank whose own part of the buffer a chunk is, where ranks own parts.
  int owner(int chunk) const {
    return static_cast<int>(static_cast<std::int64_t>(chunk) * schedule_.ranks / schedule_.chunks);
  }

  bool holds_at_start(int rank, int chunk) const {
    using enum CollectiveOperation;
    switch (operation_) {
      case all_reduce:
      case reduce_scatter:
      case reduce:
      case broadcast:  // the other ranks' buffers hold something else, which must not survive
        return true;
      case all_gather:
      case all_to_all:
      case send_receive:
        return owner(chunk) == rank;
    }
    return false;
  }

  /// Number of times that `rank` must have the contribution of `from` in `chunk` at the end; -1 where anything will do.
  int expected_count(int rank, int chunk, int from) const {
    using enum CollectiveOperation;
    switch (operation_) {
      case all_reduce:
        return 1;
      case reduce_scatter:
        return owner(chunk) == rank ? 1 : -1;
      case reduce:
        return rank == 0 ? 1 : -1;
      case broadcast:
        return from == 0 ? 1 : 0;
      case all_gather:
        return from == owner(chunk) ? 1 : 0;
      case all_to_all:
        return chunk % schedule_.ranks != rank ? -1 : (from == owner(chunk) ? 1 : 0);
      case send_receive:
        return (owner(chunk) + 1) % schedule_.ranks != rank ? -1 : (from == owner(chunk) ? 1 : 0);
    }
    return -1;
  }

  bool in_range(const Transfer& transfer) const {
    return std::min(transfer.source, transfer.destination) >= 0 &&
           std::max(transfer.source, transfer.destination) < participants_ && transfer.source != transfer.destination &&
           transfer.first_chunk >= 0 && transfer.chunks >= 1 && transfer.stride >= 1 &&
           transfer.first_chunk + (transfer.chunks - 1) * transfer.stride < schedule_.chunks;
  }

  std::string find_hazard(const Phase& transfers) {
    std::fill(use_.begin(), use_.end(), Use{});
    for (const Transfer& transfer : transfers) {
      if (!in_range(transfer)) {
        return fmt::format("transfer {} -> {} of chunks {}+{} is out of range", transfer.source, transfer.destination,
                           transfer.first_chunk, transfer.chunks);
      }
      for (int i = 0; i < transfer.chunks; ++i) {
        const int chunk = transfer.first_chunk + i * transfer.stride;
        use_[cell(transfer.source, chunk)].read = true;
        Use& target = use_[cell(transfer.destination, chunk)];
        const bool copy = transfer.kind == Transfer::Kind::copy;
        if (target.copied_into || (copy && target.reduced_into)) {
          return fmt::format("participant {} chunk {} is written twice", transfer.destination, chunk);
        }
        (copy ? target.copied_into : target.reduced_into) = true;
      }
    }
    for (int participant = 0; participant < participants_; ++participant) {
      for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
        const Use& use = use_[cell(participant, chunk)];
        if (use.read && (use.reduced_into || use.copied_into)) {
          return fmt::format("participant {} chunk {} is read while it is written", participant, chunk);
        }
      }
    }
    return {};
  }

  void apply(const Transfer& transfer) {
    for (int i = 0; i < transfer.chunks; ++i) {
      const int chunk = transfer.first_chunk + i * transfer.stride;
      const std::uint16_t* from = counts(transfer.source, chunk);
      std::uint16_t* to = counts(transfer.destination, chunk);
      for (int rank = 0; rank < schedule_.ranks; ++rank) {
        to[rank] =
            static_cast<std::uint16_t>(transfer.kind == Transfer::Kind::reduce ? to[rank] + from[rank] : from[rank]);
      }
    }
  }

  std::string find_wrong_result() {
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
        for (int from = 0; from < schedule_.ranks; ++from) {
          const int expected = expected_count(rank, chunk, from);
          const int found = counts(rank, chunk)[from];
          if (expected >= 0 && found != expected) {
            return fmt::format("rank {} ends with the contribution of rank {} to chunk {} {} times instead of {}", rank,
                               from, chunk, found, expected);
          }
        }
      }
    }
    return {};
  }

  const Schedule& schedule_;
  CollectiveOperation operation_;
  int participants_;
  std::vector<std::uint16_t> counts_;  ///< [participant][chunk][rank]
  std::vector<Use> use_;               ///< [participant][chunk]
};

}  // namespace

std::string check_schedule(const Schedule& schedule, CollectiveOperation operation) {
  return Checker(schedule, operation).run();
}

}  // namespace foretrain::test
