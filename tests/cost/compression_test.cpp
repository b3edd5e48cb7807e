// Sizes of compressed gradients, kernels of the compression, and memory that stays.
#include "model/cost/compression.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Compression compression(Compression::Kind kind, bool error_feedback = false) {
  return {.kind = kind, .error_feedback = error_feedback};
}
Compression powersgd(int rank, bool error_feedback = true) {
  return {.kind = Compression::Kind::powersgd, .rank = rank, .error_feedback = error_feedback};
}
Compression top_k(double share, bool error_feedback = true) {
  return {.kind = Compression::Kind::top_k, .share = share, .error_feedback = error_feedback};
}

/// Bytes that all kernels of a list read and write, products included.
double traffic(const std::vector<Operator>& kernels) {
  double total = 0.0;
  for (const Operator& op : kernels) total += minimum_traffic(op).value();
  return total;
}

double traffic(const CompressionWork& work) {
  double total = traffic(work.restore);
  for (const CompressedMessage& message : work.messages) total += traffic(message.kernels);
  return total;
}

/// The first of that name.
Operator kernel(const std::vector<Operator>& kernels, std::string_view name) {
  const auto found = std::ranges::find(kernels, name, &Operator::name);
  REQUIRE(found != kernels.end());
  return *found;
}

// A layer of a million numbers, of which 1000 are vectors.
const GradientSet layer = {1'000'000, {{999, 1000, 1}}};
const GradientSet square = {4096.0 * 4096.0, {{4096, 4096, 1}}}, tall = {1000.0 * 2000.0, {{2000, 1000, 1}}};

CompressionWork work_of(const Compression& kind, const GradientSet& gradients = layer,
                        Precision precision = Precision::fp32, int ranks = 8) {
  return compression_work(kind, gradients, precision, ranks);
}

}  // namespace

TEST_CASE("gradients that are not compressed, or as narrow already, are one message without kernels") {
  for (const auto& [kind, precision, size] : {std::tuple(Compression{}, Precision::fp32, 4e6),
                                              {compression(Compression::Kind::fp16, true), Precision::bf16, 2e6}}) {
    const CompressionWork work = work_of(kind, layer, precision);
    REQUIRE(work.messages.size() == 1);
    CHECK(work.messages[0].size == Bytes(size));
    CHECK(traffic(work) == 0.0);
    CHECK(compression_memory(kind, layer, precision) == Bytes(0.0));
  }
}

TEST_CASE("a cast reads the gradients once and writes them once, there and back") {
  for (const auto kind : {Compression::Kind::fp16, Compression::Kind::bf16}) {
    const CompressionWork work = work_of(compression(kind));
    REQUIRE(work.messages.size() == 1);
    CHECK(work.messages[0].size == Bytes(2e6));
    // 4 MB in, 2 MB out, and the other way round.
    CHECK(traffic(work) == Approx(2 * 6e6));
    // Error feedback: 2 · 4 MB read and 4 MB written for the sum; 4 + 2 MB read and 4 MB written for the error.
    CHECK(traffic(work_of(compression(kind, true))) == Approx(12e6 + 12e6 + 10e6));
  }
}

TEST_CASE("fp8 agrees on a scale first") {
  const CompressionWork work = work_of(compression(Compression::Kind::fp8), layer, Precision::bf16);
  REQUIRE(work.messages.size() == 2);
  CHECK(work.messages[0].size == Bytes(4.0));
  CHECK(work.messages[1].size == Bytes(1e6));
  // 2 MB read for the maximum, 2 + 1 MB to cast and as much back.
  CHECK(traffic(work) == Approx(2e6 + 3e6 + 3e6));
}

TEST_CASE("PowerSGD sends vectors as they are and two thin factors for a matrix") {
  // A 3×3 convolution of 512 to 512 channels is a matrix of 512 × 4608: 2,359,296 numbers for (512 + 4608) · rank, 461
  // times fewer at rank 1 (Vogels et al. 2019, appendix on the networks' parameters: 461/r).
  const GradientSet convolution = {2'359'296 + 1000, {{512, 4608, 1}}};
  for (const int rank : {1, 2, 4}) {
    const CompressionWork work = compression_work(powersgd(rank), convolution, Precision::fp32, 16);
    REQUIRE(work.messages.size() == 3);
    CHECK(work.messages[0].size == Bytes(4.0 * 1000));
    CHECK(work.messages[1].size == Bytes(4.0 * 512 * rank));
    CHECK(work.messages[2].size == Bytes(4.0 * 4608 * rank));
    const double sent = (work.messages[1].size + work.messages[2].size).value();
    CHECK(4.0 * 2'359'296 / sent == Approx(461.0 / rank).epsilon(0.001));
  }
}

TEST_CASE("PowerSGD passes over a gradient three times, and eight more times for its error") {
  // M is read for P = M Q and for Q = Mt P, and written as P Qt. Feedback reads gradient and error and writes the sum
  // (3), copies it (2), and reads copy and approximation and writes the error (3). The factors hardly count.
  const double size = 4.0 * 4096 * 4096;
  CHECK(traffic(work_of(powersgd(1, false), square)) == Approx(3 * size).epsilon(0.01));
  CHECK(traffic(work_of(powersgd(1, true), square)) == Approx(11 * size).epsilon(0.01));
}

TEST_CASE("orthogonalising takes 2 n r² operations in kernels that follow each other") {
  const auto orthogonalise = [](int rank, Precision precision = Precision::fp32) {
    return kernel(work_of(powersgd(rank), tall, precision).messages.back().kernels, "orthogonalise");
  };
  CHECK(flops(orthogonalise(4)) == Flops(2.0 * 2000 * 16));
  // Column by column: three kernels for each, four more for all but the last.
  CHECK(orthogonalise(1).kernels == 3);
  CHECK(orthogonalise(2).kernels == 2 * 3 + 4);
  CHECK(orthogonalise(4, Precision::bf16).kernels == 4 * 3 + 3 * 4);
  // torch.linalg.qr: 110 us for four columns and for eight (pytorch/pytorch pull request 76673), at 7 us a launch.
  CHECK(orthogonalise(4).kernels * 7.0 == Approx(110).epsilon(0.05));
  CHECK(orthogonalise(8).kernels * 7.0 == Approx(115).epsilon(0.05));
  // A column, 2000 numbers of 4 bytes, is read twice and written once; for each pair six are read and three written.
  const auto columns = [&](int rank) {
    const auto streaming = std::get<Streaming>(orthogonalise(rank).work);
    return std::pair(streaming.read.value() / 8000.0, streaming.written.value() / 8000.0);
  };
  CHECK(columns(1) == std::pair(2.0, 1.0));
  CHECK(columns(2) == std::pair(2 * 2.0 + 6.0, 2 * 1.0 + 3.0));
  CHECK(columns(4) == std::pair(4 * 2.0 + 6 * 6.0, 4 * 1.0 + 6 * 3.0));  // four columns make six pairs
}

TEST_CASE("PowerSGD leaves alone what it would not make half as small, whichever side is longer") {
  // (100 + 100) · 25 = 5000 of 10,000 numbers is half; rank 24 is less. A rank above the matrix' own is no compression.
  const GradientSet small = {10'000, {{100, 100, 1}}};
  CHECK(work_of(powersgd(24), small).messages.size() == 2);
  for (const int rank : {25, 100, 1000, 1'000'000}) {
    const CompressionWork work = work_of(powersgd(rank), small);
    REQUIRE(work.messages.size() == 1);
    CHECK(work.messages[0].size == Bytes(40'000));
    CHECK(traffic(work) == 0.0);
  }
  // (100 + 1000) · 45 = 49,500 are less than half of 100,000 numbers, (100 + 1000) · 46 = 50,600 are more.
  for (const WeightMatrix& matrix : {WeightMatrix{100, 1000, 1}, WeightMatrix{1000, 100, 1}}) {
    CHECK(work_of(powersgd(45), {100'000, {matrix}}).messages.size() == 2);
    CHECK(work_of(powersgd(46), {100'000, {matrix}}).messages.size() == 1);
  }
}

TEST_CASE("top-k sends a value and an index for each gradient kept, to everyone") {
  const CompressionWork work = work_of(top_k(0.01));
  REQUIRE(work.messages.size() == 1);
  CHECK(work.messages[0].gathered);
  CHECK(work.messages[0].size == Bytes(10'000 * (4.0 + 4.0)));
  // bf16 values: 2 + 4 bytes.
  CHECK(work_of(top_k(0.01), layer, Precision::bf16).messages[0].size == Bytes(10'000 * 6.0));
  // Never less than one gradient.
  CHECK(work_of(top_k(1e-9)).messages[0].size == Bytes(8.0));
}

TEST_CASE("error feedback keeps one number a gradient, PowerSGD its factors as well") {
  CHECK(compression_memory(Compression{}, layer, Precision::fp32) == Bytes(0.0));
  CHECK(compression_memory(compression(Compression::Kind::fp16), layer, Precision::fp32) == Bytes(0.0));
  CHECK(compression_memory(compression(Compression::Kind::fp16, true), layer, Precision::fp32) == Bytes(4e6));
  CHECK(compression_memory(top_k(0.01), layer, Precision::bf16) == Bytes(2e6));
  CHECK(compression_memory(powersgd(4), layer, Precision::fp32) == Bytes(4e6 + 4.0 * 4 * (999 + 1000)));
  CHECK(compression_memory(powersgd(4, false), layer, Precision::fp32) == Bytes(4.0 * 4 * (999 + 1000)));
}

TEST_CASE(
    "only top-k's contributions are gathered, and what compresses are kernels of their own in compiled code too") {
  for (const Compression& kind :
       {Compression{}, compression(Compression::Kind::fp16), compression(Compression::Kind::bf16),
        compression(Compression::Kind::fp8, true), powersgd(2), powersgd(4096), top_k(0.01)}) {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      const CompressionWork work = work_of(kind, square, precision);
      std::vector<Operator> kernels = work.restore;
      for (const CompressedMessage& message : work.messages) {
        CHECK(message.gathered == (kind.kind == Compression::Kind::top_k));
        kernels.insert(kernels.end(), message.kernels.begin(), message.kernels.end());
      }
      for (const Operator& op : kernels) {
        const auto* streaming = std::get_if<Streaming>(&op.work);
        CHECK_FALSE((streaming != nullptr && streaming->fusible));
      }
    }
  }
}

TEST_CASE("top-k counts, writes out in order, and clears what it sends sector by sector, at most all of it") {
  const auto of = [](double share, std::string_view name) {
    return std::get<Streaming>(kernel(work_of(top_k(share)).messages.front().kernels, name).work);
  };
  // A million gradients of 4 bytes are read twice and compared twice; 10,000 values and indices are written.
  const Streaming select = of(0.01, "select");
  CHECK(select.read == Bytes(2 * 4e6));
  CHECK(select.written == Bytes(10'000 * 8.0));
  CHECK(select.flops == Flops(2e6));
  // 10,000 indices are read, and as many sectors of 32 bytes read and written.
  const Streaming few = of(0.01, "clear sent");
  CHECK(few.read == Bytes(10'000 * (4.0 + 32.0)));
  CHECK(few.written == Bytes(10'000 * 32.0));
  // Half of all: two million bytes of indices, and every sector once.
  const Streaming many = of(0.5, "clear sent");
  CHECK(many.read == Bytes(500'000 * 4.0 + 4e6));
  CHECK(many.written == Bytes(4e6));
}

TEST_CASE("what is sent lies beside the gradients: the narrow ones, top-k's of all replicas, PowerSGD's copy") {
  CHECK(compression_buffers(Compression{}, 1e6, Precision::fp32, 8) == Bytes(0.0));
  CHECK(compression_buffers(compression(Compression::Kind::fp16), 1e6, Precision::fp32, 8) == Bytes(2e6));
  // 10,000 of 8 bytes, its own and those of eight.
  CHECK(compression_buffers(top_k(0.01), 1e6, Precision::fp32, 8) == Bytes(9 * 80e3));
  CHECK(compression_buffers(powersgd(4), 1e6, Precision::fp32, 8) == Bytes(4e6));
  CHECK(compression_buffers(powersgd(4, false), 1e6, Precision::fp32, 8) == Bytes(0.0));
}
