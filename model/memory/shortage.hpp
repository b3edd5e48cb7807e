// The cost of a plan that may need more memory than its GPUs have.
#pragma once

namespace foretrain {

/// Slowdown of a step that is short of memory, if it runs at all. The allocator gives all free blocks
/// back and asks for them again (PyTorch's cudaMalloc retries). 2.7 to 8.1 of the twelve such rows of
/// cases_nanotron_h100.csv, four in the middle.
inline constexpr double shortage_slowdown = 4.0;

/// The chance that a plan predicted to fill this share of its GPU's memory needs more than all of it, where predictions
/// are off by a standard deviation of `spread` (of the logarithm).
double chance_of_shortage(double filled, double spread);

/// Expected slowdown of a step that is short of memory with this probability.
inline double expected_slowdown(double chance) { return 1.0 + (shortage_slowdown - 1.0) * chance; }

/// The standard deviation of errors, as logarithms, of which nine of ten are no greater than this share.
double spread_of_shortfall(double shortfall);

}  // namespace foretrain
