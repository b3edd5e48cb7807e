// Random numbers that are the same on every machine: how much longer than usual a worker computes in one iteration, and
// how long it is until something happens.
#pragma once

#include <cstdint>

namespace foretrain {

/// A lognormal factor of mean 1 and standard deviation `spread`, a function of its arguments alone. The normal deviate
/// is the sum of twelve uniform ones less six (Irwin–Hall: mean 0, variance 1, never beyond 6); uniform ones come from
/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
/// `spread` from 0 (always 1) to below 1.
double compute_factor(int worker, int iteration, double spread);

/// The largest of the factors of workers `first` to `first + count - 1`, the same bits as one by one; of more than
/// 65,536 one draw from the distribution of their largest.
double largest_factor(int first, int count, int iteration, double spread);

/// A number from 0 to below 1, a function of its arguments alone.
double uniform(int first, int second);

/// The next number from 0 to below 1; `state` moves on.
double next_uniform(std::uint64_t& state);

/// The next waiting time for what is as likely at any time: exponentially distributed, of mean 1.
double next_waiting(std::uint64_t& state);

/// Mean of the largest of `count` (from 1 to 2^20) independent normal deviates, in standard deviations: exact to four
/// digits for powers of two, in between along straight lines over the logarithm (0.01 too low at most).
double expected_largest(int count);

}  // namespace foretrain
