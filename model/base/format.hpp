// Quantities for people: three significant digits and the unit that fits.
#pragma once

#include <string>

#include "model/base/quantity.hpp"

namespace foretrain {

/// "3.57 s", "15.0 ms", "6.20 us", "0 s"; from 1000 s on "25.0 min", "3.20 h", "12.5 days".
std::string format_seconds(Seconds time);
/// "160 MB", "13.2 GB": powers of ten, as bandwidths and messages are stated.
std::string format_bytes(Bytes size);
/// "80.0 GiB": powers of two, as memories are stated.
std::string format_binary_bytes(Bytes size);
/// "16.0 GB/s".
std::string format_bandwidth(BytesPerSecond bandwidth);
/// "4.10 GFLOP".
std::string format_flops(Flops work);
/// "312 TFLOP/s".
std::string format_rate(FlopsPerSecond rate);
/// "25.6 M", "175 B": counts of parameters, tokens, samples, with the letters that papers use; "512" below a thousand.
std::string format_count(double count);
/// "43.1 %" from 0.431.
std::string format_percent(double fraction);
/// "43 %" from 0.431; what is less than a half percent from never or always is "under 1 %" or "over 99 %".
std::string format_chance(double chance);

}  // namespace foretrain
