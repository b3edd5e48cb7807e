// Traffic beside the one that is measured.
#pragma once

#include <string>

#include "model/base/quantity.hpp"

namespace foretrain {

/// Bytes of each datagram's payload: full packets.
inline constexpr int background_payload = 1472;  // 1500 less IP (20) and UDP (8)

/// Sends datagrams at `rate` on the wire until the process is ended, or after `seconds`. With a rate of zero: one TCP
/// connection, as fast as it goes.
int send_background(const std::string& address, BytesPerSecond rate, double seconds);
/// Receives either and throws it away.
int receive_background(const std::string& address, BytesPerSecond rate, double seconds);

}  // namespace foretrain
