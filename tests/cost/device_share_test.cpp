#include "model/cost/device_share.hpp"

#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;

TEST_CASE("kernels that leave enough for each other run at full speed") {
  // 0.3 + 0.5 of the multiprocessors and 0.2 + 0.7 of the bandwidth: nothing is used up.
  const std::array<DeviceShare, 2> kernels = {{{0.3, 0.2}, {0.5, 0.7}}};
  CHECK(shared_speeds(kernels) == std::vector<double>{1.0, 1.0});
  CHECK(shared_speeds({}).empty());
}

TEST_CASE("what is used up is shared max-min fairly") {
  // Two kernels that fill the device run at half speed each.
  CHECK(shared_speeds(std::array<DeviceShare, 2>{{{1.0, 0.0}, {1.0, 0.0}}}) == std::vector<double>{0.5, 0.5});
  // Bandwidth: 0.8 + 0.8 + 0.4 = 2 is twice what there is, so all three rise to 1/2 and stop. The fourth takes none of
  // it; the multiprocessors have 1 - 0.5 (0.1 + 0.1 + 0.1) = 0.85 left and it needs 0.5: full speed.
  const std::array<DeviceShare, 4> kernels = {{{0.1, 0.8}, {0.1, 0.8}, {0.1, 0.4}, {0.5, 0.0}}};
  CHECK(shared_speeds(kernels) == std::vector<double>{0.5, 0.5, 0.5, 1.0});
  // As before, but the fourth wants 1.7 times what is left in two parts: 0.85 / 1.7 = 1/2 as well, by multiprocessors.
  const std::array<DeviceShare, 5> more = {{{0.1, 0.8}, {0.1, 0.8}, {0.1, 0.4}, {0.85, 0.0}, {0.85, 0.0}}};
  for (const double speed : shared_speeds(more)) CHECK(speed == Approx(0.5));
}

TEST_CASE("a large product fills the device, a small one the multiprocessors that have a block of it") {
  const test::Machine& v100 = test::machine("v100-workstation-x2");
  const auto share = [&](std::int64_t n) {
    const Operator op{"", Matmul{.m = n, .n = n, .k = n}, Precision::fp32, 1};
    const Seconds time = operator_cost(op, v100.gpu, v100.calibration).device;
    return std::pair(device_share(op, time, v100.gpu, v100.calibration), time);
  };
  // 4000 x 4000: 63 · 63 blocks of 64 x 64 for 80 multiprocessors, and start and drain (5.2 us) are nothing.
  const auto [large, large_time] = share(4000);
  CHECK(large.multiprocessors == Approx(1.0).epsilon(0.002));
  // 256 x 256: 16 blocks for 80 multiprocessors, 0.2 of the device between start and drain; never less than the
  // arithmetic that is done, or several together would exceed the peak.
  const auto [small, small_time] = share(256);
  const double busy = (small_time.value() - v100.calibration.matmul.fixed_us * 1e-6) / small_time.value();
  const double arithmetic =
      2.0 * 256 * 256 * 256 / (v100.gpu.matrix_rate(Precision::fp32).value() * small_time.value());
  CHECK(small.multiprocessors == Approx(std::max(0.2 * busy, arithmetic)));
  CHECK(small.multiprocessors < 0.5);
}

TEST_CASE("a large copy takes the bandwidth that copies achieve") {
  const test::Machine& v100 = test::machine("v100-workstation-x2");
  const Operator op{"", Streaming{StreamingKind::elementwise, Bytes(1e9), Bytes(1e9), Flops(), true}, Precision::fp32,
                    1};
  const Seconds time = operator_cost(op, v100.gpu, v100.calibration).device;
  const DeviceShare share = device_share(op, time, v100.gpu, v100.calibration);
  CHECK(share.bandwidth == Approx(1.0).epsilon(0.01));
  CHECK(share.multiprocessors == Approx(1.0).epsilon(0.01));
}

TEST_CASE("what the first scarce resource leaves of the second is shared among the rest") {
  // Bandwidth stops three kernels at 1/3. They take 3 · 0.2 / 3 = 0.2 of the multiprocessors: 0.8 for two that want
  // 0.8.
  const std::array<DeviceShare, 5> kernels = {{{0.2, 1.0}, {0.2, 1.0}, {0.2, 1.0}, {0.8, 0.0}, {0.8, 0.0}}};
  const std::vector<double> speeds = shared_speeds(kernels);
  for (std::size_t i = 0; i < 5; ++i) CHECK(speeds[i] == Approx(i < 3 ? 1.0 / 3.0 : 0.5));
}

TEST_CASE("more blocks than multiprocessors take all of them, but neither while kernels start nor twice") {
  const test::Machine& v100 = test::machine("v100-workstation-x2");
  // 1024 x 1024: 256 blocks of 64 x 64 for 80 multiprocessors; only start and drain leave the device alone.
  const Operator op{"", Matmul{.m = 1024, .n = 1024, .k = 64}, Precision::fp32, 1};
  const Seconds time = operator_cost(op, v100.gpu, v100.calibration).device;
  const double busy = 1.0 - v100.calibration.matmul.fixed_us * 1e-6 / time.value();
  REQUIRE(busy < 0.95);
  CHECK(device_share(op, time, v100.gpu, v100.calibration).multiprocessors == Approx(busy));
  // A time that no kernel of this size can take: the whole device, not more.
  const DeviceShare all = device_share(op, Seconds(1e-9), v100.gpu, v100.calibration);
  CHECK(all.multiprocessors == 1.0);
  CHECK(all.bandwidth == 1.0);
}

TEST_CASE("what is only written fills the device as what is only read does") {
  const test::Machine& v100 = test::machine("v100-workstation-x2");
  const auto share = [&](double read, double written) {
    const Operator op{"", Streaming{StreamingKind::elementwise, Bytes(read), Bytes(written), Flops(), true},
                      Precision::fp32, 1};
    return device_share(op, operator_cost(op, v100.gpu, v100.calibration).device, v100.gpu, v100.calibration)
        .multiprocessors;
  };
  CHECK(share(0.0, 1e9) > 0.9);
  CHECK(share(1e9, 0.0) > 0.9);
}

TEST_CASE("what takes no time has no share of the device") {
  const test::Machine& v100 = test::machine("v100-workstation-x2");
  const Operator op{"", Matmul{.m = 64, .n = 64, .k = 64}, Precision::fp32, 1};
  const DeviceShare none = device_share(op, Seconds(0.0), v100.gpu, v100.calibration);
  CHECK(none.multiprocessors == 0.0);
  CHECK(none.bandwidth == 0.0);
}
