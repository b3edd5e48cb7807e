// Operators on a processor of round figures.
#include "model/cost/kernels.hpp"

#include "model/base/number.hpp"
#include "model/cost/launches.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// 10 us of dispatch, 100 GFLOP/s products, 200 and 50 GFLOP/s convolutions; 32 MB of cache at 100 GB/s, memory at 20.
Gpu round_core(double share = 1.0) {
  Gpu core;
  core.l2_cache = Bytes(32e6);
  core.l2_bandwidth = BytesPerSecond(100e9);
  core.memory_bandwidth = BytesPerSecond(20e9);
  Processor processor;
  processor.share = share;
  processor.dispatch = Seconds(10e-6);
  processor.product_rate = FlopsPerSecond(100e9);
  processor.convolution_rate = FlopsPerSecond(200e9);
  processor.convolution_gradient_rate = FlopsPerSecond(50e9);
  processor.reorder_rate = BytesPerSecond(8e9);
  processor.norm_rate = BytesPerSecond(10e9);
  processor.norm_gradient_rate = BytesPerSecond(40e9);
  processor.transcendental_rate = BytesPerSecond(16e9);
  processor.pooling_rate = BytesPerSecond(4e9);
  processor.random_rate = BytesPerSecond(2e9);
  processor.conversion_rate = BytesPerSecond(5e9);
  processor.fresh_rate = BytesPerSecond(4e9);
  core.processor = processor;
  return core;
}

double microseconds_of(const std::string& name, const OperatorWork& work, int kernels = 1, double share = 1.0) {
  return operator_cost({name, work, Precision::fp32, kernels}, round_core(share), Calibration()).device.value() * 1e6;
}

double microseconds_of(OperatorRole role, const Streaming& work, bool backward = false, int kernels = 1) {
  Operator op = in_role(role, {"loop", work, Precision::fp32, kernels});
  op.backward = backward;
  return operator_cost(op, round_core(), Calibration()).device.value() * 1e6;
}

Streaming moved(StreamingKind kind, double bytes) {
  return {kind, Bytes(bytes * 0.5), Bytes(bytes * 0.5), Flops(0.0), false};
}

}  // namespace

TEST_CASE("A product on a processor is dispatched, then computed by the same thread") {
  // 2 · 100 · 200 · 50 = 2 MFLOP at 100 GFLOP/s: 20 us after 10 us of dispatch.
  CHECK(microseconds_of("linear", Matmul{1, 100, 200, 50}) == Approx(30.0));
  // On half a core both take twice as long.
  CHECK(microseconds_of("linear", Matmul{1, 100, 200, 50}, 1, 0.5) == Approx(60.0));
}

TEST_CASE("What a product's operands take to be packed comes beside its operations") {
  // 5,000, 10,000 and 20,000 numbers of four bytes at 10 GB/s: 14 us beside the 20 us of the operations.
  Gpu core = round_core();
  core.processor->packing_rate = BytesPerSecond(10e9);
  const auto microseconds = [&](const OperatorWork& work) {
    return operator_cost({"linear", work, Precision::fp32, 1}, core, Calibration()).device.value() * 1e6;
  };
  CHECK(microseconds(Matmul{1, 100, 200, 50}) == Approx(44.0));
  // A convolution by 1 x 1 is the same product.
  Convolution same{1, 50, 10, 10, 200, 1, 1, 10, 10};
  CHECK(microseconds(same) == Approx(44.0));
}

TEST_CASE("A convolution on a processor computes and reorders its tensors") {
  // One image of 10 channels, 40 x 40, to 40 channels by 1 x 1 with stride 2, computed as 16 to 48: 2 · 400 · 48 · 16 =
  // 614.4 kFLOP at 200 GFLOP/s, 3.072 us; 16000 inputs, 400 weights and 16000 outputs, 129.6 kB, at 8 GB/s: 16.2 us.
  Convolution work{.n = 1, .c = 10, .h = 40, .w = 40, .k = 40, .r = 1, .s = 1, .p = 20, .q = 20, .stride = 2};
  CHECK(microseconds_of("conv", work) == Approx(10.0 + 3.072 + 16.2));
  // Its gradients at 50 GFLOP/s: 12.288 us.
  work.pass = ConvolutionPass::weight_gradient;
  CHECK(microseconds_of("conv weight gradient", work) == Approx(10.0 + 12.288 + 16.2));
  // A grey image's one channel is not padded: 2 · 400 · 48 = 38.4 kFLOP, 0.192 us; 17,640 numbers, 8.82 us.
  work.c = 1;
  work.pass = ConvolutionPass::forward;
  CHECK(microseconds_of("conv", work) == Approx(10.0 + 0.192 + 8.82));
}

TEST_CASE("A loop on a processor goes at its own speed or memory's, whichever is less") {
  using Kind = StreamingKind;
  using Role = OperatorRole;
  // 8 MB in the cache: 80 us at 100 GB/s; 40 MB, more than it holds: 2000 us at 20 GB/s.
  CHECK(microseconds_of("relu", moved(Kind::elementwise, 8e6)) == Approx(90.0));
  CHECK(microseconds_of("relu", moved(Kind::elementwise, 40e6)) == Approx(2010.0));
  // 8 MB through loops of 10, 40, 16, 4 and 2 GB/s.
  CHECK(microseconds_of(Role::norm, moved(Kind::reduction, 8e6), false, 2) == Approx(820.0));
  CHECK(microseconds_of(Role::norm, moved(Kind::reduction, 8e6), true) == Approx(210.0));
  CHECK(microseconds_of(Role::loss, moved(Kind::reduction, 8e6)) == Approx(510.0));
  CHECK(microseconds_of(Role::average_pooling, moved(Kind::reduction, 8e6)) == Approx(2010.0));
  CHECK(microseconds_of(Role::dropout, moved(Kind::elementwise, 8e6)) == Approx(4010.0));
  // Backward, dropout multiplies by a mask that is there, and a maximum's gradient goes where the index says.
  CHECK(microseconds_of(Role::dropout, moved(Kind::elementwise, 8e6), true) == Approx(90.0));
  CHECK(microseconds_of(Role::max_pooling, moved(Kind::elementwise, 8e6), true) == Approx(90.0));
}

TEST_CASE("Results of 32 MiB and more are pages that the system clears each time") {
  // 2^23 numbers written, 33.55 MB, and as many read: 67.1 MB at 20 GB/s, 3355.4 us, and 33.55 MB at 4 GB/s, 8388.6 us.
  const double mapped = 33'554'432.0;
  CHECK(microseconds_of("relu", moved(StreamingKind::elementwise, 2.0 * mapped)) == Approx(10.0 + 3355.44 + 8388.61));
  // One number less stays in the heap; the optimizer writes into what is there.
  CHECK(microseconds_of("relu", moved(StreamingKind::elementwise, 2.0 * mapped - 8.0)) == Approx(10.0 + 3355.44));
  CHECK(microseconds_of("optimizer", moved(StreamingKind::optimizer, 2.0 * mapped)) == Approx(10.0 + 3355.44));
  // A product of 4096 x 2048 by 10: 167.8 MFLOP at 100 GFLOP/s, and its pages.
  CHECK(microseconds_of("linear", Matmul{1, 4096, 2048, 10}) == Approx(10.0 + 1677.72 + 8388.61));
}

TEST_CASE("Tensors are mapped one by one, and a convolution's result as its kernel writes it") {
  // Two kernels that write 33.55 MB in all: neither's half of it is mapped. Three that write as much each: all of it
  // is.
  const double mapped = 33'554'432.0;
  using Kind = StreamingKind;
  CHECK(microseconds_of("relu", moved(Kind::elementwise, 2.0 * mapped), 2) == Approx(20.0 + 3355.44));
  CHECK(microseconds_of("relu", moved(Kind::elementwise, 6.0 * mapped), 3) == Approx(30.0 + 3.0 * (3355.44 + 8388.61)));
  // 512 grey images to 20 channels of 26 x 26: 27.7 MB, but 44.3 MB of 32 channels before they are reordered, 11,076
  // us.
  Convolution work{.n = 512, .c = 1, .h = 28, .w = 28, .k = 20, .r = 3, .s = 3, .p = 26, .q = 26};
  const double of_400 = 400.0 / 512.0 * 44'302'336.0;  // of 400 images: 34.6 MB; of 380 they are not mapped
  const auto beyond = [&](std::int64_t images) {
    work.n = images;
    const double reordered = (number(images) * (784.0 + 20.0 * 676.0) + 180.0) * 4.0 / 8e9 * 1e6;
    const double computed = 2.0 * number(images) * 676.0 * 9.0 * 32.0 / 200e9 * 1e6;
    return microseconds_of("conv", work) - 10.0 - reordered - computed;
  };
  CHECK(beyond(512) == Approx(44'302'336.0 / 4e9 * 1e6));
  CHECK(beyond(400) == Approx(of_400 / 4e9 * 1e6));
  CHECK(beyond(380) == Approx(0.0).margin(1e-6));
}

TEST_CASE("Gradients become narrower at a rate of their own") {
  // 3 MB at 5 GB/s; back at the cache's 100 GB/s.
  CHECK(microseconds_of(OperatorRole::shortening, moved(StreamingKind::elementwise, 3e6)) == Approx(610.0));
  CHECK(microseconds_of("cast back", moved(StreamingKind::elementwise, 3e6)) == Approx(40.0));
}

TEST_CASE("A convolution of 1 x 1 that leaves nothing out is a product on a processor") {
  // 10 images of 20 x 20 by 16 x 40: 2 · 4000 · 640 = 5.12 MFLOP at 100 GFLOP/s.
  Convolution work{.n = 10, .c = 16, .h = 20, .w = 20, .k = 40, .r = 1, .s = 1, .p = 20, .q = 20};
  CHECK(microseconds_of("conv", work) == Approx(10.0 + 51.2));
}

TEST_CASE("Attention on a processor is products and passes over all scores") {
  // Two heads of 100 queries and keys of 50 numbers: 20,000 scores. Two products of 2 MFLOP: 40 us; their softmax reads
  // and writes 160 kB at 16 GB/s: 10 us. Four dispatches: 40 us. What a causal mask leaves out is computed all the
  // same.
  Attention work{1, 2, 2, 100, 100, 50, true, AttentionKind::standard};
  CHECK(microseconds_of("attention", work, 4) == Approx(90.0));
  // Dropout of the scores: 160 kB at 2 GB/s, 80 us more.
  work.dropout = true;
  CHECK(microseconds_of("attention", work, 4) == Approx(170.0));
  // Backward four products, 80 us; three passes, 240 kB: 15 us, and for dropout, in the cache, 2.4 us.
  work.backward = true;
  CHECK(microseconds_of("attention backward", work, 5) == Approx(50.0 + 80.0 + 15.0 + 2.4));
}
