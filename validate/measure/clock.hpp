// The clocks that measurements read, and what they run on.
#pragma once

#include <string>

namespace foretrain {

/// The monotonic clock, which all processes and network namespaces of a machine share, in seconds.
double now();

/// Processor time of this thread in seconds: what others take of a busy machine's processors is not in it.
double thread_time();

/// The date of now in UTC, as strftime() writes it.
std::string utc_date(const char* format);

/// The processor as the kernel calls it; empty where it does not tell.
std::string processor_name();

}  // namespace foretrain
