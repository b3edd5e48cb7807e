#include "model/cost/device_share.hpp"

#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;

namespace {

const test::Machine& v100() { return test::machine("v100-workstation-x2"); }

DeviceShare share_of(const OperatorWork& work, Seconds time) {
  return device_share({"", work, Precision::fp32, 1}, time, v100().gpu, v100().calibration);
}
DeviceShare share_of(const OperatorWork& work) { return share_of(work, v100().time(work, Precision::fp32)); }

Streaming moving(double read, double written) {
  return {StreamingKind::elementwise, Bytes(read), Bytes(written), Flops(), true};
}

}  // namespace

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
  // Bandwidth stops three kernels at 1/3. They take 3 · 0.2 / 3 = 0.2 of the multiprocessors: 0.8 for two that want
  // 0.8.
  const std::array<DeviceShare, 5> last = {{{0.2, 1.0}, {0.2, 1.0}, {0.2, 1.0}, {0.8, 0.0}, {0.8, 0.0}}};
  const std::vector<double> speeds = shared_speeds(last);
  for (std::size_t i = 0; i < 5; ++i) CHECK(speeds[i] == Approx(i < 3 ? 1.0 / 3.0 : 0.5));
}

TEST_CASE("a product takes the multiprocessors that have a block of it, but not while it starts and drains") {
  const double fixed = v100().calibration.matmul.fixed_us * 1e-6;
  // 4000 x 4000: 63 · 63 blocks of 64 x 64 for 80 multiprocessors, and start and drain (5.2 us) are nothing.
  CHECK(share_of(Matmul{.m = 4000, .n = 4000, .k = 4000}).multiprocessors == Approx(1.0).epsilon(0.002));
  // 256 x 256: 16 blocks for 80 multiprocessors, 0.2 of the device between start and drain; never less than the
  // arithmetic that is done, or several together would exceed the peak.
  const Matmul few{.m = 256, .n = 256, .k = 256};
  const double time = v100().time(few, Precision::fp32).value();
  const double arithmetic = 2.0 * 256 * 256 * 256 / (v100().gpu.matrix_rate(Precision::fp32).value() * time);
  CHECK(share_of(few).multiprocessors == Approx(std::max(0.2 * (1.0 - fixed / time), arithmetic)));
  CHECK(share_of(few).multiprocessors < 0.5);
  // 1024 x 1024: 256 blocks of 64 x 64 for 80 multiprocessors; only start and drain leave the device alone.
  const Matmul many{.m = 1024, .n = 1024, .k = 64};
  const double busy = 1.0 - fixed / v100().time(many, Precision::fp32).value();
  REQUIRE(busy < 0.95);
  CHECK(share_of(many).multiprocessors == Approx(busy));
  // A time that no kernel of this size can take: the whole device, not more. What takes none has no share.
  CHECK(share_of(many, Seconds(1e-9)) == DeviceShare{1.0, 1.0});
  CHECK(share_of(many, Seconds(0.0)) == DeviceShare{0.0, 0.0});
}

TEST_CASE("a large copy takes the bandwidth that copies achieve, and reads or writes alone the whole device too") {
  const DeviceShare share = share_of(moving(1e9, 1e9));
  CHECK(share.bandwidth == Approx(1.0).epsilon(0.01));
  CHECK(share.multiprocessors == Approx(1.0).epsilon(0.01));
  CHECK(share_of(moving(0.0, 1e9)).multiprocessors > 0.9);
  CHECK(share_of(moving(1e9, 0.0)).multiprocessors > 0.9);
}
