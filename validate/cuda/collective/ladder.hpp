// Which sizes and numbers of GPUs are measured.
#pragma once

#include <cstdint>
#include <vector>

namespace foretrain::gpu {

/// first, first·factor, … as long as that is below `last`, and `last`. Throws std::invalid_argument for a factor below
/// 2 or a first size of 0.
std::vector<std::uint64_t> size_ladder(std::uint64_t first, std::uint64_t last, unsigned factor);

/// All of them, then 2, 4, 8, … below; the most telling first, in case the time is short. Nothing for fewer than 2.
std::vector<int> rank_counts(int all);

/// How many operations a batch has that takes `least` seconds, when one takes `once`: at least 1, at most `most`, by
/// default the number that nccl-tests repeats.
int batch_of(double once, double least, int most = 20);

}  // namespace foretrain::gpu
