// What compressed gradients weigh on the wire, which kernels that takes, and what stays in memory.
#include "model/cost/compression.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Compression compression(Compression::Kind kind, bool error_feedback = false) {
  Compression result;
  result.kind = kind;
  result.error_feedback = error_feedback;
  return result;
}

Compression powersgd(int rank, bool error_feedback = true) {
  Compression result = compression(Compression::Kind::powersgd, error_feedback);
  result.rank = rank;
  return result;
}

Compression top_k(double share, bool error_feedback = true) {
  Compression result = compression(Compression::Kind::top_k, error_feedback);
  result.share = share;
  return result;
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

}  // namespace

TEST_CASE("uncompressed gradients are one message without kernels") {
  const CompressionWork work = compression_work(Compression{}, layer, Precision::fp32, 8);
  REQUIRE(work.messages.size() == 1);
  CHECK(work.messages[0].size == Bytes(4e6));
  CHECK(traffic(work) == 0.0);
}

TEST_CASE("a cast reads the gradients once and writes them once, there and back") {
  for (const auto kind : {Compression::Kind::fp16, Compression::Kind::bf16}) {
    const CompressionWork work = compression_work(compression(kind), layer, Precision::fp32, 8);
    REQUIRE(work.messages.size() == 1);
    CHECK(work.messages[0].size == Bytes(2e6));
    // 4 MB in, 2 MB out, and the other way round.
    CHECK(traffic(work) == Approx(2 * 6e6));
    // Error feedback: 2 · 4 MB read and 4 MB written for the sum; 4 + 2 MB read and 4 MB written for the error.
    CHECK(traffic(compression_work(compression(kind, true), layer, Precision::fp32, 8)) == Approx(12e6 + 12e6 + 10e6));
  }
}

TEST_CASE("fp8 agrees on a scale first") {
  const CompressionWork work = compression_work(compression(Compression::Kind::fp8), layer, Precision::bf16, 8);
  REQUIRE(work.messages.size() == 2);
  CHECK(work.messages[0].size == Bytes(4.0));
  CHECK(work.messages[1].size == Bytes(1e6));
  // 2 MB read for the maximum, 2 + 1 MB to cast and as much back.
  CHECK(traffic(work) == Approx(2e6 + 3e6 + 3e6));
}

TEST_CASE("gradients that are as narrow already are not cast") {
  const CompressionWork work = compression_work(compression(Compression::Kind::fp16), layer, Precision::bf16, 8);
  REQUIRE(work.messages.size() == 1);
  CHECK(work.messages[0].size == Bytes(2e6));
  CHECK(traffic(work) == 0.0);
  CHECK(compression_memory(compression(Compression::Kind::fp16, true), layer, Precision::bf16) == Bytes(0.0));
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
    for (const CompressedMessage& message : work.messages) CHECK_FALSE(message.gathered);
  }
}

TEST_CASE("PowerSGD passes over a gradient three times, and eight more times for its error") {
  // M is read for P = M Q and for Q = Mt P, and written as P Qt. Feedback reads gradient and error and writes the sum
  // (3), copies it (2), and reads copy and approximation and writes the error (3). The factors hardly count.
  const GradientSet square = {4096.0 * 4096.0, {{4096, 4096, 1}}};
  const double size = 4.0 * 4096 * 4096;
  CHECK(traffic(compression_work(powersgd(1, false), square, Precision::fp32, 8)) == Approx(3 * size).epsilon(0.01));
  CHECK(traffic(compression_work(powersgd(1, true), square, Precision::fp32, 8)) == Approx(11 * size).epsilon(0.01));
}

TEST_CASE("PowerSGD packs vectors together, a read and a write, and unpacks what comes back") {
  const CompressionWork work = compression_work(powersgd(1), layer, Precision::fp32, 8);
  // 1000 numbers of 4 bytes.
  CHECK(minimum_traffic(kernel(work.messages.front().kernels, "pack vectors")).value() == 8000.0);
  CHECK(minimum_traffic(kernel(work.restore, "unpack vectors")).value() == 8000.0);
  // Top-k's threshold is that of a hundredth of a million gradients: read once and sorted in four passes.
  const CompressionWork sparse = compression_work(top_k(0.001), layer, Precision::fp32, 8);
  CHECK(minimum_traffic(kernel(sparse.messages.front().kernels, "sample threshold")).value() ==
        Approx(2 * 5 * 4 * 10'000.0));
}

TEST_CASE("orthogonalising takes 2 n r² operations in kernels that follow each other") {
  const GradientSet tall = {1000.0 * 2000.0, {{2000, 1000, 1}}};
  const auto orthogonalise = [&](int rank, Precision precision) {
    const CompressionWork work = compression_work(powersgd(rank), tall, precision, 8);
    return kernel(work.messages.back().kernels, "orthogonalise");
  };
  CHECK(flops(orthogonalise(4, Precision::fp32)) == Flops(2.0 * 2000 * 16));
  // Column by column: three kernels for each, four more for all but the last.
  CHECK(orthogonalise(1, Precision::fp32).kernels == 3);
  CHECK(orthogonalise(2, Precision::fp32).kernels == 2 * 3 + 4);
  CHECK(orthogonalise(4, Precision::bf16).kernels == 4 * 3 + 3 * 4);
  // torch.linalg.qr: 110 us for four columns and for eight (pytorch/pytorch pull request 76673), at 7 us a launch.
  CHECK(orthogonalise(4, Precision::fp32).kernels * 7.0 == Approx(110).epsilon(0.05));
  CHECK(orthogonalise(8, Precision::fp32).kernels * 7.0 == Approx(115).epsilon(0.05));
}

TEST_CASE("PowerSGD leaves alone what it would not make half as small") {
  // (100 + 100) · 25 = 5000 of 10,000 numbers is half; rank 24 is less. A rank above the matrix' own is no compression.
  const GradientSet small = {10'000, {{100, 100, 1}}};
  CHECK(compression_work(powersgd(24), small, Precision::fp32, 8).messages.size() == 2);
  for (const int rank : {25, 100, 1000, 1'000'000}) {
    const CompressionWork work = compression_work(powersgd(rank), small, Precision::fp32, 8);
    REQUIRE(work.messages.size() == 1);
    CHECK(work.messages[0].size == Bytes(40'000));
    CHECK(traffic(work) == 0.0);
  }
}

TEST_CASE("PowerSGD weighs the factors of both sides") {
  // (100 + 1000) · 45 = 49,500 are less than half of 100,000 numbers, (100 + 1000) · 46 = 50,600 are more; the same
  // turned over.
  for (const WeightMatrix& matrix : {WeightMatrix{100, 1000, 1}, WeightMatrix{1000, 100, 1}}) {
    const GradientSet gradients = {100'000, {matrix}};
    CHECK(compression_work(powersgd(45), gradients, Precision::fp32, 8).messages.size() == 2);
    CHECK(compression_work(powersgd(46), gradients, Precision::fp32, 8).messages.size() == 1);
  }
}

TEST_CASE("top-k sends a value and an index for each gradient kept, to everyone") {
  const CompressionWork work = compression_work(top_k(0.01), layer, Precision::fp32, 8);
  REQUIRE(work.messages.size() == 1);
  CHECK(work.messages[0].gathered);
  CHECK(work.messages[0].size == Bytes(10'000 * (4.0 + 4.0)));
  // bf16 values: 2 + 4 bytes.
  CHECK(compression_work(top_k(0.01), layer, Precision::bf16, 8).messages[0].size == Bytes(10'000 * 6.0));
  // Never less than one gradient.
  CHECK(compression_work(top_k(1e-9), layer, Precision::fp32, 8).messages[0].size == Bytes(8.0));
}

TEST_CASE("restoring top-k gradients takes longer the more ranks send theirs") {
  const auto restored = [](int ranks) {
    return traffic(compression_work(top_k(0.001), layer, Precision::fp32, ranks).restore);
  };
  // 4 MB are cleared; each rank's 1000 gradients are read (8 bytes) and added to a sector that is read and written.
  CHECK(restored(8) == Approx(4e6 + 8 * 1000 * (8.0 + 64.0)));
  CHECK(restored(64) == Approx(4e6 + 64 * 1000 * (8.0 + 64.0)));
}

TEST_CASE("error feedback keeps one number a gradient, PowerSGD its factors as well") {
  CHECK(compression_memory(Compression{}, layer, Precision::fp32) == Bytes(0.0));
  CHECK(compression_memory(compression(Compression::Kind::fp16), layer, Precision::fp32) == Bytes(0.0));
  CHECK(compression_memory(compression(Compression::Kind::fp16, true), layer, Precision::fp32) == Bytes(4e6));
  CHECK(compression_memory(top_k(0.01), layer, Precision::bf16) == Bytes(2e6));
  CHECK(compression_memory(powersgd(4), layer, Precision::fp32) == Bytes(4e6 + 4.0 * 4 * (999 + 1000)));
  CHECK(compression_memory(powersgd(4, false), layer, Precision::fp32) == Bytes(4.0 * 4 * (999 + 1000)));
}

TEST_CASE("only top-k's contributions are gathered, all others are added up on their way") {
  const GradientSet square = {4096.0 * 4096.0, {{4096, 4096, 1}}};
  for (const Compression& kind :
       {Compression{}, compression(Compression::Kind::fp16), compression(Compression::Kind::bf16),
        compression(Compression::Kind::fp8), powersgd(2), powersgd(4096)}) {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      for (const CompressedMessage& message : compression_work(kind, square, precision, 8).messages) {
        CHECK_FALSE(message.gathered);
      }
    }
  }
}

TEST_CASE("what compresses gradients are kernels of their own, in compiled code as well") {
  for (const Compression& kind : {compression(Compression::Kind::fp8, true), powersgd(2), top_k(0.01)}) {
    const CompressionWork work = compression_work(kind, layer, Precision::fp32, 8);
    std::vector<Operator> kernels = work.restore;
    for (const CompressedMessage& message : work.messages) {
      kernels.insert(kernels.end(), message.kernels.begin(), message.kernels.end());
    }
    for (const Operator& op : kernels) {
      const auto* streaming = std::get_if<Streaming>(&op.work);
      CHECK_FALSE((streaming != nullptr && streaming->fusible));
    }
  }
}

TEST_CASE("orthogonalising reads a column twice and writes it once, for each pair it reads six and writes three") {
  // Columns of 2000 numbers of 4 bytes.
  const GradientSet tall = {1000.0 * 2000.0, {{2000, 1000, 1}}};
  const auto columns = [&](int rank) {
    const CompressionWork work = compression_work(powersgd(rank), tall, Precision::fp32, 8);
    const auto streaming = std::get<Streaming>(kernel(work.messages.back().kernels, "orthogonalise").work);
    return std::pair(streaming.read.value() / 8000.0, streaming.written.value() / 8000.0);
  };
  CHECK(columns(1) == std::pair(2.0, 1.0));
  CHECK(columns(2) == std::pair(2 * 2.0 + 6.0, 2 * 1.0 + 3.0));
  CHECK(columns(4) == std::pair(4 * 2.0 + 6 * 6.0, 4 * 1.0 + 6 * 3.0));  // four columns make six pairs
}

TEST_CASE("top-k counts, writes out in order, and clears what it sends sector by sector, at most all of it") {
  const auto of = [](double share, std::string_view name) {
    return kernel(compression_work(top_k(share), layer, Precision::fp32, 8).messages.front().kernels, name);
  };
  // A million gradients of 4 bytes are read twice and compared twice; 10,000 values and indices are written.
  const auto select = std::get<Streaming>(of(0.01, "select").work);
  CHECK(select.read == Bytes(2 * 4e6));
  CHECK(select.written == Bytes(10'000 * 8.0));
  CHECK(select.flops == Flops(2e6));
  // 10,000 indices are read, and as many sectors of 32 bytes read and written.
  const auto few = std::get<Streaming>(of(0.01, "clear sent").work);
  CHECK(few.read == Bytes(10'000 * (4.0 + 32.0)));
  CHECK(few.written == Bytes(10'000 * 32.0));
  // Half of all: two million bytes of indices, and every sector once.
  const auto many = std::get<Streaming>(of(0.5, "clear sent").work);
  CHECK(many.read == Bytes(500'000 * 4.0 + 4e6));
  CHECK(many.written == Bytes(4e6));
}

TEST_CASE("casts work on parts of a gradient, PowerSGD and top-k need the whole") {
  CHECK_FALSE(Compression{}.needs_whole_gradient());
  CHECK_FALSE(compression(Compression::Kind::fp16).needs_whole_gradient());
  CHECK(powersgd(1).needs_whole_gradient());
  CHECK(top_k(0.1).needs_whole_gradient());
}

TEST_CASE("what is sent lies beside the gradients: the narrow ones, top-k's of all replicas, PowerSGD's copy") {
  CHECK(compression_buffers(Compression{}, 1e6, Precision::fp32, 8) == Bytes(0.0));
  CHECK(compression_buffers(compression(Compression::Kind::fp16), 1e6, Precision::fp32, 8) == Bytes(2e6));
  // 10,000 of 8 bytes, its own and those of eight.
  CHECK(compression_buffers(top_k(0.01), 1e6, Precision::fp32, 8) == Bytes(9 * 80e3));
  CHECK(compression_buffers(powersgd(4), 1e6, Precision::fp32, 8) == Bytes(4e6));
  CHECK(compression_buffers(powersgd(4, false), 1e6, Precision::fp32, 8) == Bytes(0.0));
}
