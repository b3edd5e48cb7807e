#include "validate/host_calibration/processors.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "validate/measure/clock.hpp"

namespace foretrain {

std::vector<int> own_processors() {
  std::vector<int> result;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) result.push_back(i);
    }
  }
  if (result.empty()) result.push_back(0);
  return result;
}

BoundTo::BoundTo(int processor) {
  CPU_ZERO(&before_);
  sched_getaffinity(0, sizeof before_, &before_);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(processor), &one);
  sched_setaffinity(0, sizeof one, &one);
}

BoundTo::~BoundTo() { sched_setaffinity(0, sizeof before_, &before_); }

#if defined(__x86_64__)
namespace {

/// Multiplications a second, of four chains that wait for nothing but the multiplier.
double multiply() {
  constexpr int turns = 50'000;
  std::uint64_t a = 3, b = 5, c = 7, d = 9;
  const double start = now();
  for (int i = 0; i < turns; ++i) {
    asm volatile("imul %0, %0\n imul %1, %1\n imul %2, %2\n imul %3, %3" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
  }
  return 4.0 * turns / (now() - start);
}

}  // namespace

double work_of_two(int first, int second) {
  constexpr int trials = 20;
  double alone = 0.0, together = 0.0;
  for (int trial = 0; trial < trials; ++trial) {
    {
      const BoundTo bound(trial % 2 == 0 ? first : second);
      alone = std::max(alone, multiply());
    }
    std::atomic<int> ready{0};
    double other = 0.0;
    const auto meet = [&ready] {
      ++ready;
      while (ready.load() < 2) std::this_thread::yield();
    };
    std::thread thread([&] {
      const BoundTo bound(second);
      meet();
      other = multiply();
    });
    double own = 0.0;
    {
      const BoundTo bound(first);
      meet();
      own = multiply();
    }
    thread.join();
    together = std::max(together, own + other);
  }
  return together / alone;
}
#else
double work_of_two(int, int) { return 0.0; }
#endif

int threads_of_first_core() {
  const std::vector<int> processors = own_processors();
  int count = 1;
  for (std::size_t i = 1; i < processors.size(); ++i) {
    const double work = work_of_two(processors.front(), processors[i]);
    if (!(work > 0.0)) return 0;
    if (work < 1.5) ++count;  // half-way between one core and two
  }
  return processors.size() > 1 ? count : 0;
}

}  // namespace foretrain
