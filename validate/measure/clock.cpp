#include "validate/measure/clock.hpp"

#include <time.h>

#include <array>
#include <fstream>

namespace foretrain {

namespace {

double read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

double now() { return read_clock(CLOCK_MONOTONIC); }

double thread_time() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

std::string utc_date(const char* format) {
  const time_t moment = time(nullptr);
  tm parts{};
  std::array<char, 64> text{};
  strftime(text.data(), text.size(), format, gmtime_r(&moment, &parts));
  return text.data();
}

std::string processor_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace foretrain
