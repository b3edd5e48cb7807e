// In which order the points of a plan are measured where the time may not do for all.
#pragma once

#include <string>

namespace foretrain {

/// The least goes first. A random draw without replacement, each point's chance in proportion to its `value` (above 0):
/// −ln(u) / value with u in (0, 1) (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", Information
/// Processing Letters 97, 2006), u from the hash of the name: the same everywhere, and for a point the same when a plan
/// grows. Whatever the time does for, it is spent on what matters most, and on something of everything.
double turn_of(const std::string& name, double value);

}  // namespace foretrain
