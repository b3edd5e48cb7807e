
#include "model/cost/gemm.hpp"
#include "model/cost/kernels.hpp"
#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Machine;
using foretrain::test::machine;

namespace {

Convolution square(std::int64_t n, std::int64_t channels, std::int64_t size, std::int64_t filters, std::int64_t kernel,
                   std::int64_t stride = 1) {
  const std::int64_t out = size / stride;
  return {.n = n,
          .c = channels,
          .h = size,
          .w = size,
          .k = filters,
          .r = kernel,
          .s = kernel,
          .p = out,
          .q = out,
          .stride = stride};
}

}  // namespace

TEST_CASE("A 1x1 convolution is the GEMM of pixels, filters and channels, whose tiles' starts hide") {
  // 64 · 28 · 28 = 50,176 pixels, 512 filters, 256 channels. On V100 in fp32 addresses are worked out beside the
  // multiplications, by units of their own. A product's 392 · 4 tiles of 128 x 128, two on each of 80 multiprocessors
  // at a time, are ten rounds, and it waits for the starts of each, seven memory latencies. A convolution does not, and
  // its tiles of 128 x 16 fill 157 waves of 2,048 results instead of 20 of 16,384: 1.9 % less.
  const Machine& m = machine("dgx1-v100-16gb");
  const double product = m.time(Matmul{.m = 50176, .n = 512, .k = 256}, Precision::fp32).value();
  const double starts = 10.0 * m.calibration.matmul.tile_latencies * m.gpu.memory_latency.value();
  CHECK(m.time(square(64, 256, 28, 512, 1), Precision::fp32).value() ==
        Approx(0.981 * (product - starts)).epsilon(0.003));
}

TEST_CASE("Images in NCHW are turned round before kernels for tensor cores, and back behind them") {
  // 64 images of 256 x 28 x 28 in, as much out: 12.8 million numbers each, read and written by two kernels more.
  const Machine& m = machine("dgx-a100-80gb");
  const auto longer = [&](std::int64_t kernel, Precision precision) {
    Convolution work = square(64, 256, 28, 256, kernel);
    const Seconds nhwc = m.time(work, precision);
    work.format = MemoryFormat::nchw;
    return (m.time(work, precision) - nhwc).value();
  };
  const auto passes = [&](double element) {
    const Bytes images(2.0 * 64 * 256 * 28 * 28 * element);
    const Operator turned{"", Streaming{StreamingKind::elementwise, images, images, Flops(0)}, Precision::fp16, 2};
    return operator_cost(turned, m.gpu, m.calibration).device.value();
  };
  CHECK(longer(3, Precision::fp16) == Approx(passes(2.0)));
  CHECK(longer(1, Precision::fp16) == Approx(passes(2.0)));
  CHECK(longer(3, Precision::tf32) == Approx(passes(4.0)));
  CHECK(longer(1, Precision::tf32) == 0.0);  // a product of matrices as they lie
  CHECK(longer(3, Precision::fp32) == 0.0);  // CUDA cores read NCHW
}

TEST_CASE("On CUDA cores no kernel divides the sums of a forward pass, as those of weight gradients are") {
  // 2 images of 8 x 8, 4,608 numbers to be added for each of 128 x 64 results: 2 tiles of 128 x 32 on 80
  // multiprocessors, alone on theirs with four of sixteen warps. The gradient of 64 x 4,608 weights has more tiles, and
  // shorter sums.
  const Machine& m = machine("dgx1-v100-16gb");
  Convolution work = square(2, 512, 8, 64, 3);
  work.stride = 2;  // nothing to transform
  work.h = work.w = 16;
  const double forward = m.time(work, Precision::fp32).value();
  const double tile = 2.0 * 128 * 32 * 4608 / (m.gpu.matrix_rate(Precision::fp32).value() / m.gpu.sms);
  CHECK(forward > 4.0 * tile);
  CHECK(forward < 5.0 * tile);
  work.pass = ConvolutionPass::weight_gradient;
  CHECK(m.time(work, Precision::fp32).value() < 0.2 * forward);
}

TEST_CASE("Transforms save multiplications of filters that slide one by one over CUDA cores, where they save any") {
  struct Row {
    Convolution work;
    double saving;
    Precision precision = Precision::fp32;
  };
  Convolution grouped = square(1, 64, 28, 64, 3), flat = square(1, 192, 17, 192, 7);
  grouped.groups = 2;
  flat.r = 1;
  const Row rows[] = {
      // Winograd's F(4x4, 3x3) takes 36 multiplications for 144, where its tiles of 4 x 4 divide the image.
      {square(1, 64, 28, 64, 3), 4.0},
      {square(1, 64, 28, 64, 3, 2), 1.0},                // strided
      {square(1, 64, 28, 64, 1), 1.0},                   // nothing to save
      {square(1, 64, 28, 64, 3), 1.0, Precision::fp16},  // tensor cores are faster
      {grouped, 1.0},
      // AlexNet's 5x5 on 27 x 27: 27 + 5 - 1 = 31 fits a Fourier tile of 32 x 32. Half a spectrum has 32 · 17 = 544
      // points of four multiplications: 2,176 for 27² · 25 = 18,225.
      {square(1, 64, 27, 192, 5), 18225.0 / 2176.0},
      // 28 + 5 - 1 = 32 fits just, 29 + 5 - 1 = 33 takes four tiles; Winograd's F(4x4, 5x5) then has 8² tiles of 8²
      // points.
      {square(1, 64, 28, 192, 5), 28.0 * 28.0 * 25.0 / 2176.0},
      {square(1, 64, 29, 192, 5), 29.0 * 29.0 * 25.0 / 4096.0},
      // A filter of one row, on 17 x 17: 2,176 multiplications are more than 17² · 7 = 2,023.
      {flat, 1.0},
      // A small image: 14 + 3 - 1 = 16 fits a tile of 16 x 16: 16 · 9 points of four multiplications, 576, as many as
      // Winograd's 4² tiles of 36. 13: the same 576. AlexNet's product is then of complex numbers, longer and wider,
      // with half of the traffic, and transformed images are faster than Winograd's alone would be.
      {square(1, 384, 14, 384, 3), 14.0 * 14.0 * 9.0 / 576.0},
      {square(1, 384, 13, 384, 3), 13.0 * 13.0 * 9.0 / 576.0}};
  for (const Row& row : rows) {
    INFO(row.work.h << " x " << row.work.w << ", " << row.work.r << " x " << row.work.s);
    CHECK(transform_saving(row.work, row.precision) == Approx(row.saving));
  }
}

TEST_CASE("What transforms leave to multiply runs at half of the peak, of complex numbers as of real ones") {
  // Filters of 5 x 5 by Fourier transforms: 8.4 times fewer, of complex numbers; of 3 x 3 by Winograd's: real ones.
  // Many channels, so that transforms take little time beside products.
  const Machine& m = machine("dgx1-v100-16gb");
  const auto share_of_peak = [&](const Convolution& work) {
    const OperatorCost cost = m.cost(work, Precision::fp32);
    return cost.flops / transform_saving(work, Precision::fp32) / cost.device / m.gpu.matrix_rate(Precision::fp32);
  };
  const double complex = share_of_peak(square(128, 1024, 27, 1024, 5));
  const double real = share_of_peak(square(128, 1024, 28, 1024, 3));
  CHECK(real == Approx(0.54).epsilon(0.1));
  CHECK(complex == Approx(real).epsilon(0.2));
}

TEST_CASE("Before Volta, address arithmetic takes turns with fp32: the more so, the smaller the tiles are") {
  // Of a tile of a x b, a · b instructions multiply (at 0.97 of the peak) and 45 · (a + b) find addresses, for each
  // element of the sum. Many filters have tiles of 256 x 128: 1 + 0.97 · 45 · (1/256 + 1/128) = 1.51 times as long as
  // the product; 64 filters have 256 x 64: 1 + 0.97 · 45 · (1/256 + 1/64) = 1.85. Long sums, so that starting a tile
  // takes next to nothing.
  const Machine& m = machine("dgx1-p100");
  const auto slowdown = [&](std::int64_t filters) {
    Gemm gemm;
    gemm.m = 256 * 56 * 64;
    gemm.n = filters;
    gemm.k = 100000;
    gemm.narrow_tiles = true;
    const Seconds plain = gemm_time(gemm, m.gpu, m.calibration).body;
    gemm.address_instructions = m.calibration.convolution.address_instructions;
    return gemm_time(gemm, m.gpu, m.calibration).body / plain;
  };
  CHECK(slowdown(1024) == Approx(1.51).epsilon(0.01));
  CHECK(slowdown(64) == Approx(1.85).epsilon(0.01));
  // A convolution of 1 x 1 is that product.
  const Convolution work = square(64, 512, 56, 1024, 1);
  const OperatorCost cost = m.cost(work, Precision::fp32);
  CHECK(cost.flops / cost.device / m.gpu.matrix_rate(Precision::fp32) == Approx(1.0 / 1.51).epsilon(0.1));
}

TEST_CASE(
    "Images of three colours are gathered one number at a time, of four channels by four, of eight by the engine") {
  // 256 · 112 · 112 pixels of 3 · 7 · 7 numbers at 45 instructions each, on 64 lanes of 132 multiprocessors at 1.98
  // GHz: 1.270 ms; of four channels 49 pieces, a third. Each further 64 filters gather anew.
  const Machine& m = machine("dgx-h100");
  const auto milliseconds = [&](std::int64_t channels, std::int64_t filters, ConvolutionPass pass) {
    Convolution work = square(256, channels, 224, filters, 7, 2);
    work.pass = pass;
    return m.burst(work, Precision::fp16).device.value() * 1e3;
  };
  using enum ConvolutionPass;
  CHECK(milliseconds(3, 64, forward) == Approx(1.270).epsilon(0.01));
  CHECK(milliseconds(3, 64, weight_gradient) == Approx(1.270).epsilon(0.01));
  CHECK(milliseconds(3, 128, forward) == Approx(2.0 * 1.270).epsilon(0.01));
  CHECK(milliseconds(4, 64, forward) == Approx(1.270 / 3.0).epsilon(0.01));
  CHECK(milliseconds(8, 64, forward) < 0.5 * milliseconds(3, 64, forward));
  CHECK(milliseconds(3, 64, data_gradient) < milliseconds(3, 64, forward));  // 64 filters lie side by side
}

TEST_CASE("A depthwise convolution is bound by traffic") {
  // 64 · 256 · 56 · 56 fp32 elements, read and written: 411 MB at 732 · 0.86 GB/s = 653 us, as fast as a copy.
  Convolution work = square(64, 256, 56, 256, 3);
  work.groups = 256;
  const OperatorCost cost = machine("dgx1-p100").cost(work, Precision::fp32);
  CHECK(cost.bound == Bound::memory);
  CHECK(cost.device.value() * 1e6 == Approx(653).epsilon(0.02));
}

TEST_CASE("Time never falls as a convolution grows") {
  const Machine& m = machine("dgx1-v100-16gb");
  for (const auto precision : {Precision::fp32, Precision::fp16}) {
    for (const auto pass :
         {ConvolutionPass::forward, ConvolutionPass::data_gradient, ConvolutionPass::weight_gradient}) {
      double last_batch = 0.0, last_channels = 0.0, last_filters = 0.0, last_size = 0.0;
      for (std::int64_t i = 1; i < 120; ++i) {
        Convolution batch = square(i, 64, 28, 128, 3), channels = square(8, i, 28, 128, 3);
        Convolution filters = square(8, 64, 28, i, 3), size = square(8, 64, i, 128, 3);
        const auto rises = [&](Convolution& work, double& last) {
          work.pass = pass;
          const double time = m.time(work, precision).value();
          INFO(i << ", pass " << static_cast<int>(pass));
          CHECK(time >= last * (1 - 1e-9));
          last = time;
        };
        rises(batch, last_batch);
        // On tensor cores eight channels are faster than fewer, which are gathered.
        if (precision == Precision::fp32 || i >= 8) {
          rises(channels, last_channels);
          rises(filters, last_filters);
        }
        rises(size, last_size);
      }
    }
  }
}

TEST_CASE("A Fourier tile of 32 keeps the outputs that no edge of the kernel has wrapped into") {
  // 32 - 7 + 1 = 26 a side: an image of 26 x 26 is one tile, of 27 x 27 four.
  const double one = transform_saving(square(1, 64, 26, 64, 7), Precision::fp32);
  const double four = transform_saving(square(1, 64, 27, 64, 7), Precision::fp32);
  CHECK(four > 1.0);
  CHECK(one / four == Approx(4.0 * (26.0 * 26.0) / (27.0 * 27.0)));
  // 16 - 7 + 1 = 10: a tile of 16 x 16 has about a quarter of the larger one's points.
  const double small = transform_saving(square(1, 64, 10, 64, 7), Precision::fp32);
  const double large = transform_saving(square(1, 64, 11, 64, 7), Precision::fp32);
  CHECK(small / large == Approx(32.0 * 17.0 / (16.0 * 9.0) * (10.0 * 10.0) / (11.0 * 11.0)));
  // Both sides have to fit: of 10 x 11 outputs the larger tile keeps all, the smaller one not.
  Convolution wide = square(1, 64, 10, 64, 7);
  wide.w = wide.q = 11;
  CHECK(transform_saving(wide, Precision::fp32) / large == Approx(10.0 / 11.0));
}

TEST_CASE("Tensor cores take channels by eight: a ninth costs as much as eight more") {
  const Machine& m = machine("dgx1-v100-16gb");
  const auto time = [&](std::int64_t channels) {
    return m.time(square(64, channels, 56, 512, 5), Precision::fp16).value();
  };
  CHECK(time(40) == Approx(time(33)).epsilon(0.03));
  CHECK(time(33) > 1.1 * time(32));
}
