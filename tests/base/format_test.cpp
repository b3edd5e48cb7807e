#include "model/base/format.hpp"

#include "model/base/units.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("Times have three significant digits and the unit that fits") {
  CHECK(format_seconds(Seconds(3.5665)) == "3.57 s");
  CHECK(format_seconds(Seconds(0.015)) == "15.0 ms");
  CHECK(format_seconds(Seconds(6.2e-6)) == "6.20 us");
  CHECK(format_seconds(Seconds(1.5e-9)) == "1.50 ns");
  CHECK(format_seconds(Seconds(0.0)) == "0 s");
  CHECK(format_seconds(Seconds(159.637)) == "160 s");
  CHECK(format_seconds(Seconds(1500.0)) == "25.0 min");
  CHECK(format_seconds(Seconds(3 * 3600.0)) == "3.00 h");
  CHECK(format_seconds(Seconds(33.5 * 86400.0)) == "33.5 days");
}

TEST_CASE("A value that rounds up to the next unit is printed in it") {
  CHECK(format_seconds(Seconds(0.9994)) == "999 ms");
  CHECK(format_seconds(Seconds(0.9996)) == "1.00 s");
  CHECK(format_bytes(Bytes(999.6e6)) == "1.00 GB");
  CHECK(format_seconds(Seconds(9.996)) == "10.0 s");
}

TEST_CASE("Sizes, rates and counts") {
  CHECK(format_bytes(Bytes(160e6)) == "160 MB");
  CHECK(format_bytes(Bytes(12.0)) == "12.0 B");
  CHECK(format_binary_bytes(Bytes(80.0 * 1073741824.0)) == "80.0 GiB");
  CHECK(format_bandwidth(BytesPerSecond(16e9)) == "16.0 GB/s");
  CHECK(format_rate(FlopsPerSecond(312e12)) == "312 TFLOP/s");
  CHECK(format_flops(Flops(4.1e9)) == "4.10 GFLOP");
  CHECK(format_count(25.557e6) == "25.6 M");
  CHECK(format_count(175e9) == "175 B");
  CHECK(format_count(512) == "512");
  CHECK(format_percent(0.4312) == "43.1 %");
  CHECK(format_chance(0.4312) == "43 %");
  CHECK(format_chance(0.005) == "1 %");
  CHECK(format_chance(0.00499) == "under 1 %");
  CHECK(format_chance(0.0) == "under 1 %");
  CHECK(format_chance(0.994) == "99 %");
  CHECK(format_chance(0.9951) == "over 99 %");
  CHECK(format_chance(1.0) == "over 99 %");
}

TEST_CASE("What is printed can be read again, within the rounding") {
  // three digits: half a unit of the third is at most 0.5 %
  for (double seconds = 2e-9; seconds < 900.0; seconds *= 1.37) {
    CHECK(parse_quantity<Seconds>(format_seconds(Seconds(seconds))).value() == Approx(seconds).epsilon(0.005));
  }
  for (double bytes = 2.0; bytes < 1e15; bytes *= 1.37) {
    CHECK(parse_quantity<Bytes>(format_bytes(Bytes(bytes))).value() == Approx(bytes).epsilon(0.005));
    CHECK(parse_quantity<BytesPerSecond>(format_bandwidth(BytesPerSecond(bytes))).value() ==
          Approx(bytes).epsilon(0.005));
  }
}
