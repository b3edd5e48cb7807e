// Making gradients smaller before they are sent: what travels then, which kernels that takes, and what it keeps in
// memory.
#pragma once

#include <optional>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/base/words.hpp"
#include "model/hardware/precision.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// Compression of gradients. `error_feedback`: what compression lost is kept and added to the next step's
/// gradients (Seide et al. 2014; Karimireddy et al. 2019).
struct Compression {
#define COMPRESSION(word, number) word,
  enum class Kind {
#include "model/cost/compression.def"
  };
  /// The number in parentheses behind a kind's word.
  enum class Number { nothing, rank, share };

  Kind kind = Kind::none;
  int rank = 0;        ///< powersgd(rank)
  double share = 0.0;  ///< top_k(share) of the gradients, 0 < share ≤ 1
  bool error_feedback = false;

  [[nodiscard]] static Number number_of(Kind kind);
  /// The number format that the gradients are cast to; nothing for the kinds that do more.
  [[nodiscard]] std::optional<Precision> format() const { return value_of<Precision>(name(kind)); }
  [[nodiscard]] bool casts() const { return format().has_value(); }
  /// Whether it needs a rank's whole gradient: then it cannot be combined with sharded gradients.
  [[nodiscard]] bool needs_whole_gradient() const { return kind != Kind::none && !casts(); }
};

/// Gradients that are sent together.
struct GradientSet {
  double elements = 0.0;
  std::vector<WeightMatrix> matrices;  ///< which of them are matrices; the rest are vectors

  GradientSet& operator+=(const GradientSet& other);
};

/// Kernels, then a message to all other replicas.
struct CompressedMessage {
  std::vector<Operator> kernels;
  Bytes size;             ///< one rank's contribution
  bool gathered = false;  ///< every rank needs every other's contribution (all-gather); else they are added up
};

/// Messages in the order in which they are sent, then the kernels that restore the gradients.
struct CompressionWork {
  std::vector<CompressedMessage> messages;
  std::vector<Operator> restore;
};

/// Bytes that one gradient takes on the wire when only its number format is changed; never more than its own.
Bytes cast_bytes(const Compression& compression, Precision gradient);

/// The work of sending `gradients`, held in `gradient` precision, to `ranks` replicas.
///
/// Casts: one pass that reads the gradient and writes it narrower, one back. fp8 first finds the largest magnitude,
/// which the replicas agree on (4 bytes), as its range is too small without a scale (Peng et al. 2023, "FP8-LM").
///
/// PowerSGD (Vogels, Karimireddy and Jaggi, NeurIPS 2019, algorithm 1), for each matrix M of n × m: P = M Q is summed
/// over the replicas (n · r), orthogonalised, Q = Mᵀ P is summed (m · r), and M becomes P Qᵀ. As PyTorch's
/// communication hook does it, which orthogonalises the last step's Q before use. It sends vectors, and matrices that
/// would not shrink to half (min_compression_rate), as they are, together and first.
///
/// top-k: the largest `share` by magnitude, found by a threshold from a sample of one percent (Lin et al. 2018, "Deep
/// Gradient Compression"), as values and 32-bit indices. Different ranks choose different ones, so they are gathered,
/// and each rank adds up what it receives.
CompressionWork compression_work(const Compression& compression, const GradientSet& gradients, Precision gradient,
                                 int ranks);

/// Bytes that stay in memory from step to step: the error of each gradient, and PowerSGD's factors.
Bytes compression_memory(const Compression& compression, const GradientSet& gradients, Precision gradient);

/// Bytes sent and received of a bucket of `elements` gradients while these are in memory as well.
Bytes compression_buffers(const Compression& compression, double elements, Precision gradient, int replicas);

}  // namespace foretrain
