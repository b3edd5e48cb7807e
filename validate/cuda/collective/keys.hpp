// How a parameter server cuts a bucket: into keys, each of which lives on one server.
#pragma once

#include <cstdint>
#include <vector>

namespace foretrain::gpu {

struct Key {
  std::uint64_t first = 0, count = 0;  ///< elements of the bucket
  int index = 0;
  int server = 0;
};

/// Keys begin at multiples of this many elements, so that vector instructions can take them.
constexpr std::uint64_t key_alignment = 64;

/// Cuts into `keys` pieces (0: one per server) as equal as the alignment lets them be; key k lives on server k mod
/// servers, as in the replays on hosts. Keys without elements are left out. With one key per server this is the
/// schedule parameter_server of model/collectives: push all, add, pull all. Throws std::invalid_argument without a
/// server.
std::vector<Key> cut_into_keys(std::uint64_t elements, int servers, int keys);

}  // namespace foretrain::gpu
