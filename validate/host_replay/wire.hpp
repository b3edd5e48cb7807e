// What the packet model says of a message between hosts.
#pragma once

#include <string>

#include "model/base/quantity.hpp"

namespace foretrain {

/// Bytes in the message's direction, as Linux counts them on virtual links. `protocol` as in ProbeMeasurement.
Bytes model_wire_bytes(const std::string& protocol, Bytes payload);

}  // namespace foretrain
