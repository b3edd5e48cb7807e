#include "model/cost/compression.hpp"

#include <algorithm>
#include <utility>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

constexpr Bytes index_bytes(4.0);
constexpr Bytes scale_bytes(4.0);
// PyTorch, torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py: min_compression_rate.
constexpr double least_saving = 2.0;
// A factorisation of 4 to 8 columns of up to 4096 numbers takes 110 to 118 us whatever its size (pytorch/pytorch pull
// request 76673), which is this many launches; with two columns 85 to 88 us, more than ten launches of Gram–Schmidt.
constexpr int factoring_kernels = 16;
// Share of the gradients from which top-k's threshold is found (Lin et al. 2018, section 5: 0.1 % to 1 %).
constexpr double sampled_share = 0.01;
// An element written on its own moves a sector of 32 bytes into the L2 and out again (CUDA C++ Best Practices Guide,
// "Coalesced Access to Global Memory").
constexpr Bytes sector(32.0);

Operator stream(std::string name, StreamingKind kind, Bytes read, Bytes written, double flops, Precision precision,
                int kernels = 1) {
  return {std::move(name), Streaming{kind, read, written, Flops(flops), false}, precision, kernels};
}

/// Adds the error of the last step, out of a compressed step's gradient.
Operator add_error(Bytes gradient, double elements, Precision precision) {
  return stream("add error", StreamingKind::elementwise, gradient * 2.0, gradient, elements, precision);
}

CompressionWork cast_work(const Compression& compression, const GradientSet& gradients, Precision gradient) {
  const double n = gradients.elements;
  const Bytes wide = bytes_per_element(gradient) * n;
  const Bytes narrow = cast_bytes(compression, gradient) * n;
  CompressionWork work;
  if (narrow == wide) {  // already as narrow
    work.messages.push_back({{}, wide, false});
    return work;
  }
  std::vector<Operator> kernels;
  if (compression.error_feedback) kernels.push_back(add_error(wide, n, gradient));
  if (compression.format() == Precision::fp8) {
    kernels.push_back(stream("largest gradient", StreamingKind::reduction, wide, scale_bytes, n, gradient));
    kernels.back().backward = true;
    work.messages.push_back({std::move(kernels), scale_bytes, false});
    kernels.clear();
  }
  kernels.push_back(in_role(OperatorRole::shortening,
                            stream("cast gradients", StreamingKind::elementwise, wide, narrow, n, gradient)));
  if (compression.error_feedback) {
    kernels.push_back(stream("keep error", StreamingKind::elementwise, wide + narrow, wide, n, gradient));
  }
  work.messages.push_back({std::move(kernels), narrow, false});
  work.restore.push_back(stream("cast back", StreamingKind::elementwise, narrow, wide, n, gradient));
  return work;
}

bool worth_factoring(const WeightMatrix& matrix, int rank) {
  const auto factors = number((matrix.rows + matrix.columns) * std::int64_t{rank});
  return factors * least_saving < matrix.elements() && rank < std::min(matrix.rows, matrix.columns);
}

/// Makes the columns of a factor of `rows` × `rank` orthogonal; 2 · rows · rank² operations. Gram–Schmidt goes from
/// column to column: its length, a small number added, division; and for all but the last the products with the columns
/// behind, their sums, what they take away, and the subtraction. PyTorch does so for up to two columns and for 2-byte
/// numbers, else it factors (torch.linalg.qr).
Operator orthogonalise(std::int64_t rows, int rank, Precision precision) {
  const Bytes column = bytes_per_element(precision) * number(rows);
  const double r = rank;
  const double pairs = r * (r - 1.0) / 2.0;
  const bool column_by_column = rank <= 2 || bytes_per_element(precision) < Bytes(4.0);
  const int kernels = column_by_column ? 7 * rank - 4 : factoring_kernels;
  return stream("orthogonalise", StreamingKind::reduction, column * (2.0 * r + 6.0 * pairs), column * (r + 3.0 * pairs),
                2.0 * number(rows) * r * r, precision, kernels);
}

CompressionWork powersgd_work(const Compression& compression, const GradientSet& gradients, Precision gradient) {
  const Bytes element = bytes_per_element(gradient);
  const std::int64_t r = compression.rank;
  std::vector<Operator> make_p, make_q, restore;
  double factored = 0.0, p_elements = 0.0, q_elements = 0.0;
  for (const WeightMatrix& matrix : gradients.matrices) {
    if (!worth_factoring(matrix, compression.rank)) continue;
    const auto count = number(matrix.count);
    factored += count * matrix.elements();
    p_elements += count * (number(matrix.rows) * number(r));
    q_elements += count * (number(matrix.columns) * number(r));
    for (std::int64_t i = 0; i < matrix.count; ++i) {
      make_p.push_back(orthogonalise(matrix.columns, compression.rank, gradient));
      make_p.push_back({"P = M Q", Matmul{.m = matrix.rows, .n = r, .k = matrix.columns}, gradient, 1});
      make_q.push_back(orthogonalise(matrix.rows, compression.rank, gradient));
      const Matmul mt_p{.m = matrix.columns, .n = r, .k = matrix.rows, .transpose_a = true};
      make_q.push_back({"Q = Mt P", mt_p, gradient, 1});
      const Matmul p_qt{.m = matrix.rows, .n = matrix.columns, .k = r, .transpose_b = true};
      restore.push_back({"M = P Qt", p_qt, gradient, 1});
    }
  }

  CompressionWork work;
  const double rest = std::max(gradients.elements - factored, 0.0);
  const Bytes whole = element * factored;
  std::vector<Operator> start;
  if (factored > 0.0 && compression.error_feedback) {
    start.push_back(add_error(whole, factored, gradient));
    // Kept beside the approximation, to know what that lost.
    start.push_back(stream("copy gradients", StreamingKind::elementwise, whole, whole, 0.0, gradient));
  }
  if (rest > 0.0) {
    if (factored > 0.0) {
      start.push_back(
          stream("pack vectors", StreamingKind::elementwise, element * rest, element * rest, 0.0, gradient));
      restore.push_back(
          stream("unpack vectors", StreamingKind::elementwise, element * rest, element * rest, rest, gradient));
    }
    work.messages.push_back({std::exchange(start, {}), element * rest, false});
  }
  if (factored > 0.0) {
    start.insert(start.end(), make_p.begin(), make_p.end());
    // P's kernels are launched before anything is sent.
    if (work.messages.empty()) {
      work.messages.push_back({std::move(start), element * p_elements, false});
    } else {
      std::vector<Operator>& first = work.messages.front().kernels;
      first.insert(first.end(), start.begin(), start.end());
      work.messages.push_back({{}, element * p_elements, false});
    }
    work.messages.push_back({std::move(make_q), element * q_elements, false});
    if (compression.error_feedback) {
      restore.push_back(stream("keep error", StreamingKind::elementwise, whole * 2.0, whole, factored, gradient));
    }
  }
  work.restore = std::move(restore);
  return work;
}

CompressionWork top_k_work(const Compression& compression, const GradientSet& gradients, Precision gradient,
                           int ranks) {
  const double n = gradients.elements;
  const double kept = std::max(compression.share * n, 1.0);
  const Bytes element = bytes_per_element(gradient);
  const Bytes whole = element * n;
  const Bytes message = (element + index_bytes) * kept;
  std::vector<Operator> kernels;
  if (compression.error_feedback) kernels.push_back(add_error(whole, n, gradient));
  // A sample's magnitudes, and the radix sort's four passes over them, each a read and a write.
  const Bytes sample = element * (sampled_share * n);
  kernels.push_back(
      stream("sample threshold", StreamingKind::reduction, sample * 5.0, sample * 5.0, sampled_share * n, gradient, 5));
  // Values whose magnitude exceeds it: counted, then written out in order.
  kernels.push_back(stream("select", StreamingKind::reduction, whole * 2.0, message, 2.0 * n, gradient, 2));
  if (compression.error_feedback) {
    // The part that is not sent is the error: the rest is set to zero in place, one element at a time.
    const Bytes touched = std::min(sector * kept, whole);
    kernels.push_back(
        stream("clear sent", StreamingKind::gather, index_bytes * kept + touched, touched, 0.0, gradient));
  }
  CompressionWork work;
  work.messages.push_back({std::move(kernels), message, true});
  const double received = kept * ranks;
  const Bytes touched = std::min(sector * received, whole * number(ranks));
  work.restore.push_back(stream("clear gradients", StreamingKind::elementwise, Bytes(0.0), whole, 0.0, gradient));
  work.restore.push_back(stream("add received", StreamingKind::gather, message * number(ranks) + touched, touched,
                                received, gradient, ranks));
  return work;
}

}  // namespace

Compression::Number Compression::number_of(Kind kind) {
  using enum Number;
#define COMPRESSION(word, number) number,
  constexpr Number numbers[] = {
#include "model/cost/compression.def"
  };
  return numbers[static_cast<std::size_t>(kind)];
}

GradientSet& GradientSet::operator+=(const GradientSet& other) {
  elements += other.elements;
  matrices.insert(matrices.end(), other.matrices.begin(), other.matrices.end());
  return *this;
}

Bytes cast_bytes(const Compression& compression, Precision gradient) {
  const Bytes plain = bytes_per_element(gradient);
  return compression.casts() ? std::min(plain, bytes_per_element(*compression.format())) : plain;
}

CompressionWork compression_work(const Compression& compression, const GradientSet& gradients, Precision gradient,
                                 int ranks) {
  switch (compression.kind) {
    case Compression::Kind::none:
      return {{{{}, bytes_per_element(gradient) * gradients.elements, false}}, {}};
    case Compression::Kind::powersgd:
      return powersgd_work(compression, gradients, gradient);
    case Compression::Kind::top_k:
      return top_k_work(compression, gradients, gradient, ranks);
    default:
      return cast_work(compression, gradients, gradient);
  }
}

Bytes compression_memory(const Compression& compression, const GradientSet& gradients, Precision gradient) {
  const Bytes element = bytes_per_element(gradient);
  Bytes kept;
  const bool narrower = !compression.casts() || cast_bytes(compression, gradient) < element;
  if (compression.error_feedback && compression.kind != Compression::Kind::none && narrower) {
    kept += element * gradients.elements;
  }
  if (compression.kind == Compression::Kind::powersgd) {
    for (const WeightMatrix& matrix : gradients.matrices) {
      if (!worth_factoring(matrix, compression.rank)) continue;
      kept += element * number((matrix.rows + matrix.columns) * matrix.count) * number(compression.rank);
    }
  }
  return kept;
}

Bytes compression_buffers(const Compression& compression, double elements, Precision gradient, int replicas) {
  if (compression.casts() && cast_bytes(compression, gradient) < bytes_per_element(gradient)) {
    return cast_bytes(compression, gradient) * elements;
  }
  if (compression.kind == Compression::Kind::top_k) {
    const CompressionWork work = compression_work(compression, {elements, {}}, gradient, replicas);
    return work.messages.front().size * (1.0 + replicas);
  }
  // PowerSGD's copy.
  return compression.error_feedback ? bytes_per_element(gradient) * elements : Bytes(0.0);
}

}  // namespace foretrain
