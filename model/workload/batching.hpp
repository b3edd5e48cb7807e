// Samples of different lengths made into passes: padded, bucketed by length, or packed. What a pass computes on average
// and at most, how much of it is useful, and how unequal the passes of different replicas are. Closed forms over
// weighted values; no random numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "model/workload/length_distribution.hpp"

namespace foretrain {

/// Batching of samples of different lengths in a pass.
struct Batching {
  enum class Kind {
    maximum,    ///< each padded to the longest sequence that the model takes
    padding,    ///< each padded to the longest of its micro-batch
    bucketing,  ///< as padding, but all micro-batches of a step come from one of `buckets` equally full ranges of
                ///< length
    unpadded,   ///< samples side by side without padding, attention within each (FlashAttention's variable lengths)
    packing     ///< one after the other in sequences of `length`, none divided: what does not fit opens the next
  };
  Kind kind = Kind::padding;
  int buckets = 8;
  std::int64_t length = 0;  ///< packing; 0: the model's sequence
  bool operator==(const Batching&) const = default;
};

/// The data set, as `workload.train.data` describes it.
struct DataShape {
  LengthDistribution images{LengthDistribution::Kind::fixed, 1.0, 0, 0, 0, 0, {}};  ///< per sample
  LengthDistribution text;                                                          ///< tokens per sample
  Batching batching;
  bool operator==(const DataShape&) const = default;
};

struct Sample {
  double tokens = 0.0;  ///< visual ones included, cut at the limit
  double images = 0.0;
  double weight = 1.0;
};

/// All kinds of samples in ascending order of length; weights add up to 1.
struct SampleMix {
  std::vector<Sample> samples;
  double limit = 0.0;  ///< the longest sequence, to which longer samples are cut

  [[nodiscard]] double tokens() const;  ///< a mean sample's
  [[nodiscard]] double images() const;
  [[nodiscard]] std::vector<WeightedValue> lengths() const;
};

/// Text and images vary independently; each image becomes `visual_tokens` tokens. Lengths are whole numbers from 1 to
/// `limit`.
SampleMix mix_of(const DataShape& data, double visual_tokens, std::int64_t limit);

/// The ranges of length from which the passes of one moment come: the buckets, or all samples.
std::vector<SampleMix> length_classes(const SampleMix& mix, const Batching& batching);

/// Share of packed sequences of `length` that is filled when samples are put in one after the other and the first that
/// does not fit opens the next sequence. The filling is a renewal process whose first sample is the one that did not
/// fit before; its distribution is found by iteration. At least 1 − (longest sample)/length.
double packed_share(const SampleMix& mix, std::int64_t length);

/// Tokens that the products of one pass see, and the sequences that its attention sees: batch · length² is the sum of
/// their lengths squared, exactly for the mean pass.
struct PassTokens {
  std::int64_t tokens = 1, batch = 1, length = 1;
  bool operator==(const PassTokens&) const = default;
};

/// `count` sequences (not necessarily a whole number) with this sum of squared lengths.
PassTokens pass_tokens(double tokens, double count, double squares);

struct PassShape {
  PassTokens language;
  double images = 0.0;
};

/// A micro-batch of the data set.
struct BatchShape {
  double tokens_per_sample = 0.0;    ///< that mean something
  double computed_per_sample = 0.0;  ///< padding included
  double images_per_sample = 0.0;
  PassShape mean;     ///< decides the time
  PassShape largest;  ///< decides the memory
};

/// `micro_batch` samples a pass; packed, so many on average. `whole_rows`: attention scores all pairs of a packed
/// sequence (standard attention with a mask), not only those of the same sample.
BatchShape batch_shape(const SampleMix& mix, const Batching& batching, std::int64_t micro_batch, bool whole_rows);

/// Costs of a pass: arithmetic per token, per pair of tokens of one sequence, and per image.
struct WorkWeights {
  double per_token = 1.0, per_pair = 0.0, per_image = 0.0;
};

/// Work of one pass relative to the mean pass. At any time all replicas draw from the same class (bucket), each
/// independently. Empty: all passes are alike.
struct PassVariation {
  std::vector<std::vector<WeightedValue>> classes;
};
PassVariation pass_variation(const SampleMix& mix, const Batching& batching, std::int64_t micro_batch,
                             const WorkWeights& work);

/// E[work of the slowest of `replicas`] ÷ E[work], each doing `passes` passes between two moments at which they wait
/// for each other. One pass: exact. A few: their sum by convolution. More: its mean, variance and skewness
/// (Cornish–Fisher).
double slowest_replica(const PassVariation& variation, int passes, int replicas);

}  // namespace foretrain
